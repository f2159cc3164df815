"""The generated file as a program: whatever its arguments are, an answer or one line, and never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from archc.architecture import compile_text
from archc.codegen import generate
from tests.tiny import BY_NAME


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.py, a checkpoint for it in `weights`, and a damaged one in `damaged`."""
    made = tmp_path_factory.mktemp("program")
    tiny = BY_NAME["llama-default"]
    tiny.save(made / "weights")
    (made / "model.py").write_text(generate(compile_text(tiny.text()).architecture))
    (made / "damaged").mkdir()
    (made / "damaged" / "model.safetensors").write_bytes(b"\x09")
    return made


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "model.py", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def test_it_continues_a_prompt(folder: Path) -> None:
    done = program(folder, "weights", "1 2 210")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) == 16


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage:"),
        (["weights"], "usage:"),
        (["weights", "1", "2"], "usage:"),
        (["weights", ""], "usage:"),
        (["weights", "one two"], "usage:"),
        (["weights", "1 211"], "tokens below 211"),
        (["weights", "1 -1"], "usage:"),
        (["weights", "9" * 30], "usage:"),
        (["nowhere", "1 2"], "nowhere: "),
        (["damaged", "1 2"], "damaged: "),
    ],
)
def test_bad_arguments(folder: Path, arguments: list[str], said: str) -> None:
    done = program(folder, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
