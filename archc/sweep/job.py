"""A job: one run of `archc validate` in a process of its own, and what came of it.

Whatever ends the process, there is a result: one that crashes, is killed or takes too long is not complete.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from archc.sweep.fingerprint import versions
from archc.sweep.process import Ending, run_process
from archc.sweep.record import Header, Record, outcome_of

_MOST_LOG_BYTES: Final = 2**20
_SPOKEN: Final = "archc: "


@dataclass(frozen=True, slots=True)
class Job:
    """What is run: the words after `archc validate`, the folder that they are read in, its cores, and its limit."""

    words: tuple[str, ...]
    name: str
    fingerprint: str
    folder: Path
    threads: int
    timeout: float | None


def run_job(job: Job, stop: Event | None = None) -> tuple[Record, bytes]:
    """Run a job; what came of it, and what it said. Its temporary files go with it, however it ends.

    When `stop` is set it is ended.
    """
    with tempfile.TemporaryDirectory(prefix="archc-sweep-", ignore_cleanup_errors=True) as scratch:
        out, log = Path(scratch, "result.json"), Path(scratch, "log")
        command = [sys.executable, "-m", "archc", "validate", f"--json={out}", *job.words]
        environment = {**os.environ, "OMP_NUM_THREADS": str(job.threads), "TMPDIR": scratch}
        with log.open("wb") as said:
            ending = run_process(
                command, said, folder=job.folder, environment=environment, timeout=job.timeout, stop=stop
            )
        document, told = _document(out), _tail(log)
    return Record(_header(job, ending, document, told), document), told


def failed_job(job: Job, reason: str) -> tuple[Record, bytes]:
    """The result of a job whose process could not even be started, or was lost with its machine."""
    return Record(_header(job, None, None, b"", reason), None), reason.encode()


def _header(job: Job, ending: Ending | None, document: Mapping[str, Any] | None, told: bytes, lost: str = "") -> Header:
    code, reason = (3, lost) if ending is None else _outcome(job, ending, document, told.decode(errors="replace"))
    return Header(
        name=job.name,
        fingerprint=job.fingerprint,
        outcome=outcome_of(code),
        exit_code=code,
        reason=reason,
        seconds=round(ending.seconds, 3) if ending else 0.0,
        peak_memory_bytes=ending.peak_memory_bytes if ending else None,
        threads=job.threads,
        ended=datetime.now(UTC).isoformat(),
        host=platform.node(),
        versions=versions(),
    )


def _outcome(job: Job, ending: Ending, document: Mapping[str, Any] | None, told: str) -> tuple[int, str]:
    """The exit code of a job, and why it has no verdict, where it has none."""
    if ending.timed_out:
        return 3, f"took longer than {job.timeout:g} seconds; give it more with --timeout"
    if ending.code < 0:
        return 3, _killed(-ending.code)
    if ending.code in {0, 1} and document is not None:
        return ending.code, ""
    said = [line for line in told.splitlines() if line.strip()]
    spoken = [line.removeprefix(_SPOKEN) for line in said if line.startswith(_SPOKEN) and "  | " not in line]
    if ending.code == 1 and not spoken:  # errors of the spec
        return 1, next((line for line in said if "error[" in line), "ended with exit code 1")
    reason = spoken[-1] if spoken else said[-1] if said else "said nothing"
    return (ending.code if ending.code in {2, 3} else 3), reason


def _killed(number: int) -> str:
    name = str(number)
    with suppress(ValueError):
        name = signal.Signals(number).name
    more = "; the system does that to what takes too much memory: run fewer at once" if name == "SIGKILL" else ""
    return f"ended by the signal {name}{more}"


def _document(file: Path) -> dict[str, Any] | None:
    """The validation JSON, without its mark; None where the job wrote none."""
    if not file.is_file():
        return None
    document: dict[str, Any] = json.loads(file.read_bytes())
    document.pop("generated", None)
    return document


def _tail(log: Path) -> bytes:
    with log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _MOST_LOG_BYTES))
        return stream.read()
