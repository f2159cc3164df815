"""Every ending is one of four exit codes, with one clear line, and a bug never looks like a finding."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import archc.cli.report
from archc import __version__
from archc.errors import IncompleteError
from tests.cli.runner import archc as run

ROOT = Path(__file__).parents[2]


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> tuple[int, str]:
    """How archc ends when a command raises this."""

    def callback(**_: object) -> None:
        raise error

    monkeypatch.setattr(archc.cli.report.command, "callback", callback)
    done = run("report", "gpt2")
    assert done.out == ""
    return done.code, done.err


def test_all_well() -> None:
    done = run("explain", "norm.eps")
    assert (done.code, done.err) == (0, "")


def test_version() -> None:
    done = run("--version")
    assert (done.code, done.out) == (0, f"archc {__version__}\n")


def test_findings(tmp_path: Path) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text("archc: 1\nname: bad\n")
    done = run("report", str(spec))
    assert done.code == 1
    assert "error[E102]: vocab_size is missing" in done.err
    assert "error[E102]: layers is missing" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reprot"], "No such command 'reprot'. Did you mean 'report'?"),
        (["help"], "No such command 'help'. Did you mean --help?"),
        (["report", "gpt2", "--contxt", "5"], "Did you mean"),
        (["report"], "Missing argument 'SPEC'"),
        (["report", "gpt2", "llama3-8b"], "unexpected extra argument"),
        (["report", "gpt2", "--context", "0"], "'0' is not a whole number from 1 to 2**40"),
        (["report", "gpt2", "--context", "1.5"], "'1.5' is not a whole number"),
        (["report", "gpt2", "--batch", "9" * 5000], "is not a whole number"),
        (["report", "gpt2", "--dtype", "bf16"], "'bf16' is not one of 'float32', 'bfloat16'"),
        (["report", "gpt2", "--set", "layers"], "cannot read --set 'layers'"),
        (["report", "gtp2"], "did you mean gpt2?"),
        (["report", "gpt2", "--context", "5000"], "a learned table of 1,024 positions"),
        (["--jsn"], "No such option"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")
    assert done.out == ""
    assert "Traceback" not in done.err


def test_nothing_asked_for() -> None:
    done = run()
    assert (done.code, done.out) == (2, "")
    assert "Usage: archc" in done.err
    assert "Look at models:" in done.err


def test_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    error = IncompleteError("the weights are not here", "run `archc fetch gpt2`")
    assert ending(monkeypatch, error) == (3, "archc: the weights are not here; run `archc fetch gpt2`\n")


def test_what_an_error_quotes_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ending(monkeypatch, IncompleteError("a\x1b[2Jb")) == (3, "archc: a\\x1b[2Jb\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interrupted(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    code, said = ending(monkeypatch, error)
    assert code == 3
    assert said.startswith("archc: interrupted: the work is not complete")
    assert said.count("\n") == 1


def test_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = ending(monkeypatch, MemoryError())
    assert (code, said.count("\n")) == (3, 1)
    assert "out of memory" in said


def test_the_system_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    error = PermissionError(13, "Permission denied", "/no/rights")
    assert ending(monkeypatch, error) == (3, "archc: cannot go on: Permission denied: /no/rights\n")


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), RecursionError(), AssertionError()])
def test_a_bug_is_none_of_the_users_doing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    code, said = ending(monkeypatch, error)
    assert code == 3
    assert said.startswith(f"archc: this is a bug in archc {__version__}; please report it")
    assert "Traceback" in said
    assert type(error).__name__ in said


def test_the_code_of_a_command_is_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archc.cli.report.command, "callback", lambda **_: 1)
    assert run("report", "gpt2").code == 1


def shell(command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PY": sys.executable}
    return subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_reader_that_has_had_enough() -> None:
    """`report | true`: quiet, and no claim that all went well."""
    done = shell("{ sleep 1; $PY -m archc report gpt2 --json; echo $? >&2; } | true")
    assert done.stderr == "3\n"


def test_a_full_disk() -> None:
    done = shell("$PY -m archc report gpt2 --json > /dev/full")
    assert (done.returncode, done.stderr) == (3, "archc: cannot go on: No space left on device\n")


def test_a_terminal_without_unicode() -> None:
    done = shell("PYTHONIOENCODING=ascii $PY -m archc report gpt2 --layers")
    assert (done.returncode, done.stderr) == (0, "")
    assert "12/12?64" in done.stdout
