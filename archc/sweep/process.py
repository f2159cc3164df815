"""One process: how it ended, how long it took, and how much memory. It is ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, Final

_GRACE: Final = 5.0
"""Seconds that a process has to clean up after itself when it is told to end."""
_LOOK: Final = 0.1
"""Seconds between two looks at a process. Waiting for it would not be left when Ray cancels a task."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The exit code (below zero: the number of the signal that ended it), seconds, and the peak of memory in bytes.

    The peak is that of the process or of one that it waited for, whichever is more.
    """

    code: int
    timed_out: bool
    seconds: float
    peak_memory_bytes: int


def run_process(
    words: Sequence[str],
    said: IO[bytes],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None = None,
    stop: Event | None = None,
) -> Ending:
    """Run a command in `folder`, without input; what it says on either stream goes to `said`.

    It is ended after `timeout` seconds, when `stop` is set, and when this is interrupted: told to end, and killed if
    that does not help. Nothing of its group is left behind.
    """
    begun, told, timed_out = time.monotonic(), None, False
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    try:
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            now = time.monotonic()
            if ended:
                break
            if told is None and timeout is not None and now - begun >= timeout:
                timed_out = True
            if told is None and (timed_out or (stop is not None and stop.is_set())):
                _signal(process, signal.SIGTERM)
                told = now
            elif told is not None and now - told >= _GRACE:
                _signal(process, signal.SIGKILL)
            time.sleep(_LOOK)
    except BaseException:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        raise
    finally:
        _signal(process, signal.SIGKILL)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Ending(process.returncode, timed_out, now - begun, peak)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the process and all in its group, whether or not it still runs itself."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
