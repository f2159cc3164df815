"""`archc report`."""

from pathlib import Path

import pytest

from tests.analysis.specs import PLAIN, WINDOWED
from tests.cli.runner import archc


def test_for_readers() -> None:
    done = archc("report", "gpt2")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("gpt2  stored as gpt2\n12 layers of width 768, vocabulary 50,257, context 1,024")


def test_options_reach_the_report() -> None:
    done = archc("report", "llama3-8b", "--context", "4096", "--batch", "2", "--dtype", "int8", "--kv-dtype", "float8")
    cache = archc(
        "report", "llama3-8b", "--context", "4096", "--batch", "2", "--dtype", "int8", "--kv-dtype", "float8", "--json"
    ).json
    assert cache["kv_cache"]["bytes_at_context"] == 2 * 4096 * 65_536
    assert cache["weights"] == {"dtype": "int8", "bytes": 8_030_261_248}
    assert cache["flops"]["context"] == 4096
    assert "536.9 MB = 512 MiB" in done.out


def test_set() -> None:
    done = archc("report", "llama3-8b", "--set", "attention.kv_heads=1", "--set", "layers=16", "--json")
    assert done.json["kv_cache"]["bytes_per_token"] == 16_384 // 2


def test_layers(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(WINDOWED)
    assert len(archc("report", str(spec), "--layers", "--json").json["layer_table"]) == 6
    assert "layer_table" not in archc("report", str(spec), "--json").json
    assert "0-4" in archc("report", str(spec), "--layers").out


def test_warnings_go_to_standard_error(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(PLAIN.replace("width: 6", "width: 40"))
    done = archc("report", str(spec), "--json")
    assert done.code == 0
    assert done.json["name"] == "small"
    assert f"{spec}:11:45: warning[W401]" in done.err


@pytest.mark.parametrize("arguments", [["nothing.yaml"], ["../specs/gpt2"], ["gpt2", "--set", "a.b.c=1"]])
def test_what_is_not_there(arguments: list[str]) -> None:
    done = archc("report", *arguments)
    assert done.code in {1, 2}
    assert done.out == ""
