"""Endings that a shell can cause: closed streams, signals, names too long, and files that belong to somebody else."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import archc as run
from tests.tiny import BY_NAME

ROOT = Path(__file__).parents[2]


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `archc` is this one."""
    line = f'archc() {{ "{sys.executable}" -m archc "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("arguments", ["list", "report gpt2", "report gpt2 --json", "--help", "explain norm.eps"])
def test_a_closed_output_is_said_at_once(arguments: str) -> None:
    done = shell(f"archc {arguments} >&-")
    assert done.returncode == 3
    assert done.stderr.startswith("archc: standard output is closed")
    assert len(done.stderr.splitlines()) == 1
    assert shell(f"archc {arguments} >/dev/null").returncode == 0


def test_closed_errors_do_not_matter() -> None:
    done = shell("archc explain norm.eps 2>&-")
    assert done.returncode == 0
    assert done.stdout
    assert shell("archc report no-such-spec 2>&-").returncode == 2
    assert shell("archc list >&- 2>&- <&-").returncode == 3


@pytest.mark.parametrize(
    "arguments",
    [["report", "{}"], ["check", "{}"], ["validate", "{}"], ["fetch", "{}"], ["report", "gpt2", "--json", "{}"]],
)
def test_a_name_too_long_is_wrong_usage(arguments: list[str]) -> None:
    done = run(*(argument.format("a" * 300) for argument in arguments))
    assert done.code in {2, 3} if "--json" in arguments else done.code == 2
    assert "File name too long" in done.err or "cannot write" in done.err
    assert "Traceback" not in done.err
    assert "bug" not in done.err


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[str, str]:
    """A spec and a checkpoint of it."""
    tiny = BY_NAME["llama-default"]
    tiny.save(tmp_path / "weights")
    (tmp_path / "spec.yaml").write_text(tiny.text())
    return str(tmp_path / "spec.yaml"), str(tmp_path / "weights")


def test_a_file_of_somebody_else_is_refused_before_the_run(
    checkpoint: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import archc.validation.gate

    spec, weights = checkpoint
    runs = []
    real = archc.validation.gate.run_gate

    def counted(*arguments: Any, **named: Any) -> Any:
        runs.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(archc.validation.gate, "run_gate", counted)
    own = tmp_path / "notes.json"
    own.write_text('{"mine": true}')
    done = run("validate", spec, "--weights", weights, "--json", str(own))
    assert (done.code, runs) == (2, [])
    assert "archc did not write it" in done.err
    nowhere = run("validate", spec, "--weights", weights, "--json", str(tmp_path / "no" / "where.json"))
    assert (nowhere.code, runs) == (3, [])
    assert "No such file or directory" in nowhere.err
    assert own.read_text() == '{"mine": true}'
    assert run("validate", spec, "--weights", weights, "--json", str(own), "--force").code == 0
    assert runs == [1]
    assert json.loads(own.read_text())["passed"] is True


SLOW_FETCH = """
import sys, time
from pathlib import Path
import archc.checkpoints.fetch as fetch
from archc.cli import main

def slow(source, work, progress):
    (work / "half").write_bytes(bytes(1000))
    print("working", flush=True)
    time.sleep(60)

fetch._download = slow
fetch._require_packages = lambda source: None
sys.exit(main(["fetch", "smollm2-135m"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_fetch_that_is_ended_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_FETCH],
        cwd=ROOT,
        env=os.environ | {"ARCHC_CACHE": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        assert [path.name for path in tmp_path.rglob("half")] == ["half"]
        start = time.monotonic()
        child.send_signal(number)
        _, errors = child.communicate(timeout=30)
    assert time.monotonic() - start < 20
    assert child.returncode == 3
    assert "interrupted" in errors
    assert [path for path in tmp_path.rglob("*") if path.is_file() or path.name.startswith(".")] == []


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As nohup asks."""
    told = "import os, signal; from archc.cli import main; main(['--version']); "
    told += "os.kill(os.getpid(), signal.SIGHUP); print('still here')"
    done = shell(f'trap \'\' HUP; "{sys.executable}" -c "{told}"')
    assert "still here" in done.stdout
