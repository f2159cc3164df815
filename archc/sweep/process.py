"""One process: how it ended, how long it took, and how much memory. It can be ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

_GRACE: Final = 5.0
"""Seconds that a process has to clean up after itself when it is told to end."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The exit code (below zero: the number of the signal that ended it), seconds, and the peak of memory in bytes."""

    code: int
    timed_out: bool
    seconds: float
    peak_memory_bytes: int


class Processes:
    """The processes that run now, so that all can be ended; and from then on, none begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[_Process] = set()
        self._ended = False

    def run(
        self, words: Sequence[str], said: IO[bytes], folder: Path, environment: Mapping[str, str], timeout: float | None
    ) -> Ending:
        """Run a command in `folder`, without input; what it says on either stream goes to `said`.

        After `timeout` seconds it is ended, and so it is when this is interrupted.
        """
        begun = time.monotonic()
        process = _Process(words, said, folder, environment)
        with self._lock:
            self._running.add(process)
            if self._ended:
                process.end()
        late = threading.Timer(timeout or 0, process.end)
        if timeout is not None:
            late.start()
        try:
            code, peak = process.wait()
        finally:
            late.cancel()
            with self._lock:
                self._running.discard(process)
        seconds = time.monotonic() - begun
        return Ending(code, timeout is not None and seconds >= timeout, seconds, peak)

    def end(self) -> None:
        """Tell every process to end; each that has not after a few seconds is killed."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.end()


class _Process:
    """A process that leads a group of its own."""

    def __init__(self, words: Sequence[str], said: IO[bytes], folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        self._kill = threading.Timer(_GRACE, self._signal, [signal.SIGKILL])
        self._kill.daemon = True
        self._told = threading.Lock()

    def wait(self) -> tuple[int, int]:
        """The exit code, and the peak of memory in bytes, of it or of one that it waited for, whichever is more."""
        try:
            _, status, usage = os.wait4(self._process.pid, 0)
        except BaseException:
            self.end()
            self._process.wait()
            raise
        finally:
            self._kill.cancel()
            self._signal(signal.SIGKILL)  # what it left behind
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return self._process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def end(self) -> None:
        """Tell it to end, and kill it if that does not help."""
        if self._told.acquire(blocking=False):
            self._signal(signal.SIGTERM)
            self._kill.start()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
