"""What came of a sweep, for people and for machines: a line for each job, and how many passed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from archc.render.findings import Document, diagnosis_sentence
from archc.render.terminal import Row, aligned, console
from archc.render.units import decimal_bytes, figure, finite
from archc.spec.diagnostics import printable
from archc.sweep.record import Header, Outcome, Record

_WORDS: Final[Mapping[Outcome, tuple[str, str]]] = {
    "pass": ("pass", "green"),
    "findings": ("FAIL", "bold red"),
    "incomplete": ("not complete", "bold yellow"),
}


def sweep_document(records: Sequence[Record]) -> dict[str, object]:
    """The summary as JSON: counts, and of each job its header, its worst figure and what there is to say, if anything.

    `worst_times_floor` is null where there is no figure or one that is not finite.
    """
    counts = Counter(record.header.outcome for record in records)
    return {
        "passed": counts["pass"] == len(records),
        "jobs": {"total": len(records), **{str(outcome): counts[outcome] for outcome in _WORDS}},
        "seconds": round(sum(record.header.seconds for record in records), 3),
        "results": [_result(record) for record in records],
    }


def _result(record: Record) -> dict[str, object]:
    header = record.header
    return {
        "name": header.name,
        "outcome": header.outcome,
        "exit_code": header.exit_code,
        "worst_times_floor": finite(worst(record.document)),
        "diagnosis": [one["fault"] for one in (record.document or {}).get("diagnosis", [])],
        "said": remark(record) or None,
        "seconds": header.seconds,
        "peak_memory_bytes": header.peak_memory_bytes,
        "ended": header.ended,
        "host": header.host,
    }


def worst(document: Document | None) -> float | None:
    """The largest deviation over all probes, in noise floors, perhaps infinite; None where no probe was run."""
    times = [probe["times_floor"] for probe in (document or {}).get("probes", [])]
    return max((math.inf if one is None else float(one) for one in times), default=None)


def remark(record: Record) -> str:
    """What there is to say of a job that did not pass, in a line: its diagnosis, its verdict, or why it has none."""
    document = record.document
    if record.header.outcome == "pass" or document is None or record.header.reason:
        return record.header.reason
    if document["diagnosis"]:
        return diagnosis_sentence(document["diagnosis"][0])
    return str(document["verdict_strictly" if document["passed"] else "verdict"])


def job_line(header: Header) -> Text:
    """The line that is printed when a job ends."""
    word, style = _WORDS[header.outcome]
    return Text.assemble((f"{word:<12}", style), f"  {header.seconds:7.1f} s  ", printable(header.name))


def print_sweep(records: Sequence[Record]) -> None:
    """A line for each job, below it what there is to say, and at the end how many passed."""
    out = console()
    rows: list[Row] = [("", "× floor", "seconds", "memory", "job")]
    for record in records:
        header, most = record.header, worst(record.document)
        rows.append(
            (
                _WORDS[header.outcome][0],
                "" if most is None else figure(most),
                f"{header.seconds:.1f}",
                "" if header.peak_memory_bytes is None else decimal_bytes(header.peak_memory_bytes),
                printable(header.name),
            )
        )
    first, *lines = aligned(rows, right={1, 2, 3})
    out.print(Text(first, style="bold"))
    for record, line in zip(records, lines, strict=True):
        word, style = _WORDS[record.header.outcome]
        out.print(Text.assemble((word, style), line[len(word) :]))
        if said := remark(record):
            out.print(Text(f"    {printable(said)}"))
    out.print(Text(f"\n{_counted(records)}"))


def _counted(records: Sequence[Record]) -> str:
    counts = Counter(record.header.outcome for record in records)
    parts = [f"{counts['pass']} of {len(records)} pass"]
    parts += [f"{counts['findings']} fail"] if counts["findings"] else []
    parts += [f"{counts['incomplete']} not complete"] if counts["incomplete"] else []
    return ", ".join(parts)
