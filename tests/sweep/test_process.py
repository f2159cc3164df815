"""Processes: exit codes and signals, limits of time, memory, and ending all that was started."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from archc.sweep.process import Ending, run_process

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid, flush=True)
"""


def run(
    code: str, tmp_path: Path, timeout: float | None = None, stop: threading.Event | None = None
) -> tuple[Ending, str]:
    """How code ended, and what it said."""
    log, command = tmp_path / "log", [sys.executable, "-c", code]
    with log.open("wb") as said:
        ending = run_process(command, said, folder=tmp_path, environment=os.environ, timeout=timeout, stop=stop)
    return ending, log.read_text()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def run_until_it_speaks(code: str, tmp_path: Path) -> tuple[Ending, str]:
    """Run code, and end it as soon as it has printed a line."""
    stop, log, done = threading.Event(), tmp_path / "log", threading.Event()

    def end() -> None:
        while not (log.exists() and log.read_text().endswith("\n")) and not done.wait(0.02):
            pass
        stop.set()

    watch = threading.Thread(target=end)
    watch.start()
    try:
        return run(code, tmp_path, None, stop)
    finally:
        done.set()
        watch.join()


def test_how_a_process_ended(tmp_path: Path) -> None:
    ending, said = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ending.code, ending.timed_out) == (7, False)
    assert sorted(said.split()) == ["err", "out"]
    assert ending.seconds > 0


def test_a_crash_is_a_signal(tmp_path: Path) -> None:
    ending, _ = run("import os; os.abort()", tmp_path)
    assert ending.code == -signal.SIGABRT


def test_the_peak_of_memory_is_that_of_the_process(tmp_path: Path) -> None:
    small, _ = run("pass", tmp_path)
    large, _ = run("x = bytes(range(256)) * 2**20; del x", tmp_path)
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux begins to count before the process does
    assert small.peak_memory_bytes <= max(mine, 2**26)
    assert 2**28 <= large.peak_memory_bytes <= max(mine, 2**28 + 2**26)


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    ending, _ = run("import time; time.sleep(60)", tmp_path, timeout=0.5)
    assert ending.timed_out
    assert ending.code == -signal.SIGTERM
    assert ending.seconds < 10


def test_what_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archc.sweep.process._GRACE", 0.2)
    ending, said = run_until_it_speaks(STUBBORN, tmp_path)
    assert said == "deaf\n"
    assert ending.code == -signal.SIGKILL
    assert not ending.timed_out


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("ended", [True, False])
def test_nothing_that_a_process_started_stays(tmp_path: Path, ended: bool) -> None:
    _, said = run_until_it_speaks(f"{PARENT}\ntime.sleep(60)", tmp_path) if ended else run(PARENT, tmp_path)
    child = int(said)
    deadline = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(child)


def test_an_interruption_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, interruptions = time.sleep, [KeyboardInterrupt()]

    def interrupt(seconds: float) -> None:
        if interruptions and (tmp_path / "log").read_text().endswith("\n"):
            raise interruptions.pop()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run("import os, time; print(os.getpid(), flush=True); time.sleep(60)", tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "log").read_text()), 0)
