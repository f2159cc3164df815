"""`archc report`."""

from pathlib import Path

import pytest

from tests.analysis.specs import CONV, HYBRID, PLAIN, RECURRENT, STATE, WINDOWED
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
    assert (cache["weights"]["dtype"], cache["weights"]["bytes"]) == ("int8", 8_030_261_248)
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


@pytest.mark.parametrize("text", [HYBRID, RECURRENT])
def test_mixers_without_heads(text: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    done = archc("report", str(spec), "--layers", "--fits", "1MB")
    assert (done.code, done.err) == (0, "")
    assert "mamba2" in done.out
    assert ("query heads" in done.out) == (text == HYBRID)


def test_states_have_a_type_of_their_own(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(RECURRENT)
    found = archc("report", str(spec), "--state-dtype", "float32", "--json").json["kv_cache"]
    assert found["fixed_state_bytes"] == 2 * (2 * CONV + 4 * STATE)


def test_fits() -> None:
    found = archc("report", "llama3-8b", "--fits", "80GiB", "--json").json["fits"]
    assert (found["bytes"], found["largest_batch"], found["largest_context"]) == (80 * 2**30, 65, 532_827)
    out = archc("report", "llama3-8b", "--fits", "80GiB").out
    assert "65 sequences             of 8,192 tokens" in out
    assert "532,827 tokens           of 1 sequence\n" in out
    assert "beyond the trained 8,192" in out
    assert "beyond" not in archc("report", "llama3-8b", "--fits", "15.5GiB").out
    assert "left out: activations" in out


def test_what_does_not_fit_is_no_failure() -> None:
    done = archc("report", "llama3-8b", "--fits", "8GiB")
    assert done.code == 0
    assert "the weights alone are larger" in done.out
    assert "fits" not in archc("report", "llama3-8b", "--json").json


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GiB", 80 * 2**30),
        ("80 GiB", 80 * 2**30),
        ("80gib", 80 * 2**30),
        ("24GB", 24 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("500MiB", 500 * 2**20),
        ("500MB", 500 * 10**6),
        ("2TB", 2 * 10**12),
        ("1e9", 10**9),
        ("12345", 12_345),
        ("12345B", 12_345),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert archc("report", "gpt2", "--fits", text, "--json").json["fits"]["bytes"] == size


@pytest.mark.parametrize("text", ["", "80G", "80 cats", "-1GB", "0", "nan", "GiB", "1iB", "1e99", "2000TiB TiB", "٣GB"])
def test_sizes_that_cannot_be_read(text: str) -> None:
    done = archc("report", "gpt2", f"--fits={text}", "--json")
    assert (done.code, done.out) == (2, "")
    assert "--fits" in done.err


def test_conventions_stand_below_the_table_of_layers() -> None:
    assert "multiply-add" in archc("report", "gpt2", "--layers").out
    assert "multiply-add" not in archc("report", "gpt2").out
