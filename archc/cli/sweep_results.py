"""The folder of a sweep's results: for each job a JSON document and a log, so that a sweep can go on where it stopped.

Documents are written whole and carry a hash. One that archc did not write, or that was changed since, is never taken
for a result, and replaced only with `force`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from archc.cli.output import MARK, emit_json, is_own, require_json_target
from archc.errors import UsageError
from archc.files import write_whole
from archc.spec.diagnostics import quoted
from archc.sweep.record import Record, preferred, read_record

_LONGEST: Final = 60
_MOST_BYTES: Final = 2**28


@dataclass(frozen=True, slots=True)
class Results:
    """A folder of results, by the names of their jobs."""

    folder: Path
    force: bool = False

    def file(self, name: str) -> Path:
        """Where the document of a job is kept: its log is beside it."""
        readable = re.sub(r"[^A-Za-z0-9._=]+", "-", name)[-_LONGEST:].strip("-.")
        digest = hashlib.sha256(name.encode()).hexdigest()[:12]
        return self.folder / f"{readable}-{digest}.json".lstrip("-")

    def prepare(self) -> None:
        """Make the folder. Raises UsageError where something else is in its place."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{quoted(str(self.folder), 200)} is not a folder", "name one for the results")
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> Record | None:
        """The record of a job; None where there is none. Raises UsageError where its file may not be replaced."""
        file = self.file(name)
        if not file.exists():
            return None
        require_json_target(str(file), force=self.force)
        return None if self.force else _read(file)

    def write(self, record: Record, log: bytes) -> None:
        """Keep what came of a job, and what it said."""
        file = self.file(record.header.name)
        emit_json(record.as_json(), str(file), force=self.force)
        write_whole(file.with_suffix(".log"), log)

    def records(self) -> list[Record]:
        """All records, by name. Raises UsageError where the folder holds a JSON file that is none, or not its job's."""
        if not self.folder.is_dir():
            raise UsageError(f"{quoted(str(self.folder), 200)} is not a folder of results", "name one of archc sweep")
        found = [self._own(file) for file in sorted(self.folder.glob("*.json"))]
        return sorted(found, key=lambda one: one.header.name)

    def _own(self, file: Path) -> Record:
        """The record in a file that is that of its job: a copy under another name would count twice, or hide one."""
        record = _read(file)
        if file.name != self.file(record.header.name).name:
            problem = f"{quoted(str(file), 200)} holds the result of another job, {quoted(record.header.name, 200)}"
            raise UsageError(problem, "take it out of the folder")
        return record

    def take(self, others: list[Results]) -> list[str]:
        """Copy the results of other folders. Of two for one job the newer is kept, but one with a verdict at all costs.

        Returns the names of jobs whose verdicts differ. Nothing is written where any folder cannot be read.
        """
        kept: dict[str, tuple[Record, Results]] = {}
        differ: list[str] = []
        for results in [self, *others]:
            for record in results.records():
                name = record.header.name
                if name in kept:
                    before = kept[name][0]
                    if {"pass", "findings"} == {before.header.outcome, record.header.outcome}:
                        differ.append(name)
                    if preferred(before, record) is before:
                        continue
                kept[name] = record, results
        for record, results in kept.values():
            if results.folder.resolve() != self.folder.resolve():
                log = results.file(record.header.name).with_suffix(".log")
                self.write(record, log.read_bytes() if log.is_file() else b"")
        return sorted(set(differ))


def _read(file: Path) -> Record:
    problem = f"{quoted(str(file), 200)} is no result of archc sweep, or was changed since"
    try:
        if file.stat().st_size > _MOST_BYTES or not is_own(content := file.read_bytes()):
            raise UsageError(problem, "take it out of the folder")
        return read_record({key: value for key, value in json.loads(content).items() if key != MARK})
    except (OSError, msgspec.ValidationError):
        raise UsageError(problem, "take it out of the folder") from None
