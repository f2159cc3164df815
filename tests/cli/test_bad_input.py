"""Bad input through the command line: one clear message, the right exit code, and nothing lost or left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archc import resources
from tests.cli.runner import archc

SPEC = (resources.folder("specs") / "smollm2-135m.yaml").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: &a [x, x]\nb: [*a, *a]\n", "anchors"),
        ("archc: 1\nname: !!python/object/apply:os.system ['exit 1']\n", "tag"),
        (SPEC.replace("attention:", "\tattention:"), "tabs cannot indent"),
        (SPEC + "layers: 3\n", "already used on line"),
        (SPEC.replace("576", ".nan"), "not a finite number"),
        (SPEC.replace("hidden_size: 576", "hidden_size: -576"), "greater than 0"),
        (SPEC.replace("kv_heads: 3", "kv_heads: 4"), "choose a divisor of 9"),
        (SPEC.replace("name: smollm2-135m", 'name: "x\\"\\"\\"\\nimport os"'), "name cannot be"),
        ("", "E001"),
        ("[1, 2]", "E103"),
    ],
)
@pytest.mark.parametrize("command", ["check", "report", "generate"])
def test_a_bad_spec(command: str, content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    done = archc(command, str(file))
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err
    if command != "check":
        assert done.out == ""


def test_a_huge_spec_is_refused_without_reading_it(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as stream:
        stream.truncate(50 * 2**20)
    start = time.monotonic()
    done = archc("check", str(file))
    assert done.code == 1
    assert "larger than 1 MiB" in done.err
    assert time.monotonic() - start < 5


def test_the_same_number_without_a_dot_is_a_number(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC.replace("1.0e-5", "1e-5"))
    assert archc("check", str(file)).code == 0


def test_somebodys_own_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("mine\n")
    done = archc("generate", "gpt2", "-o", str(file))
    assert (done.code, file.read_text()) == (2, "mine\n")
    assert "--force" in done.err
    assert archc("generate", "gpt2", "-o", str(file), "--force").code == 0
    generated = file.read_text()
    assert archc("generate", "gpt2", "-o", str(file)).code == 0, "an unchanged file of archc's is replaced"
    file.write_text(generated + "# an addition\n")
    assert archc("generate", "gpt2", "-o", str(file)).code == 2
    assert file.read_text().endswith("# an addition\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.py"]


@pytest.mark.parametrize("place", ["missing/model.py", "file/model.py", ""])
def test_a_place_that_cannot_be_written(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    done = archc("generate", "gpt2", "-o", str(tmp_path / place))
    assert done.code in (2, 3)
    assert done.err.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


_HEADER = b'{"a":{"dtype":"F32","shape":[9999999999],"data_offsets":[0,39999999996]}}'
HUGE = len(_HEADER).to_bytes(8, "little") + _HEADER


def checkpoint(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return folder


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (None, b"", "no weights"),
        ("model.safetensors", b"\x05", "cut short"),
        ("model.safetensors", b"\xff" * 7 + b"\x7f" + b"{}", "model.safetensors"),
        ("model.safetensors", (2).to_bytes(8, "little") + b"{]", "model.safetensors"),
        (
            "model.safetensors",
            HUGE,
            "cut short",
        ),
        (
            "model.safetensors.index.json",
            b'{"weight_map": {"a": "model-00001-of-00002.safetensors"}}',
            "lacks the shard",
        ),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "../../etc/passwd"}}', "passwd"),
        ("pytorch_model.bin", b"\x80\x04.", "pickle"),
    ],
)
def test_a_damaged_checkpoint(name: str | None, content: bytes, said: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "weights")
    if name is not None:
        (folder / name).write_bytes(content)
    done = archc("validate", "smollm2-135m", "--weights", str(folder))
    assert done.code == 3
    assert said in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["validate", "smollm2-135m", "--weights", "nowhere"], 3, "does not exist"),
        (["validate", "gpt2"], 2, "--weights"),
        (["validate", "no-such-model"], 2, "no spec"),
        (["fetch", "smolm2-135m"], 2, "did you mean smollm2-135m?"),
        (["generate", "llama3-9b"], 2, "did you mean"),
        (["report", "gpt2", "--set", "attention.heads"], 2, "path=value"),
    ],
)
def test_wrong_usage(arguments: list[str], code: int, said: str) -> None:
    done = archc(*arguments)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


def test_weights_not_fetched_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARCHC_CACHE", str(tmp_path))
    done = archc("validate", "smollm2-135m")
    assert done.code == 3
    assert "archc fetch smollm2-135m" in done.err


def test_ctrl_c_during_a_long_run(tmp_path: Path) -> None:
    """A validation is interrupted while it works: one line, exit code 3, no file begun."""
    code = (
        "import signal, sys, time, archc.validation.gate as gate\n"
        "def slow(*_, **__): signal.raise_signal(signal.SIGINT); time.sleep(60)\n"
        "gate.run_gate = slow\n"
        "from archc.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    folder, result = checkpoint(tmp_path / "weights"), tmp_path / "result.json"
    command = [sys.executable, "-c", code, "validate", "gpt2", "--weights", str(folder), "--json", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "interrupted" in done.stderr
    assert not result.exists()
