"""What is kept of a job: a header, and the validation JSON where there is a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

Outcome: TypeAlias = Literal["pass", "findings", "incomplete"]
HEADER: Final = "job"
"""The key of the header in the document of a job; all others are those of the validation JSON."""


class Header(Struct, frozen=True, kw_only=True):
    """A job by its name (the words after `archc validate`), what its result depends on, and how it ended.

    `reason` says why there is no verdict, and is empty where there is one. `ended` is in UTC (ISO 8601).
    """

    name: str
    fingerprint: str
    outcome: Outcome
    exit_code: int
    reason: str
    seconds: float
    peak_memory_bytes: int | None
    threads: int
    ended: str
    host: str
    versions: dict[str, str | None]


class Record(Struct, frozen=True):
    """A job's header and its validation JSON; None where it ended without a verdict."""

    header: Header
    document: Mapping[str, Any] | None

    def as_json(self) -> dict[str, object]:
        """One document of both."""
        return {HEADER: msgspec.to_builtins(self.header), **(self.document or {})}


def outcome_of(code: int) -> Outcome:
    """What an exit code of `archc validate` means: one that asks for something else has no verdict either."""
    return "pass" if code == 0 else "findings" if code == 1 else "incomplete"


def read_record(document: Mapping[str, Any]) -> Record:
    """The record that `as_json` made a document of. Raises msgspec.ValidationError where it is none."""
    header = msgspec.convert(document.get(HEADER), Header)
    rest = {key: value for key, value in document.items() if key != HEADER}
    return Record(header, rest or None)


def preferred(a: Record, b: Record) -> Record:
    """Of two records of one job, that with a verdict; of two with one, or without, the newer."""
    return max(a, b, key=lambda one: (one.header.outcome != "incomplete", one.header.ended))
