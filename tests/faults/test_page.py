"""docs/faults.md shows the catalogue as it is."""

from __future__ import annotations

from archc.faults.catalogue import CATALOGUE
from benchmarks.faults import BEGIN, END, PAGE, tables


def test_the_page_shows_the_catalogue() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert shown == tables(), "python -m benchmarks.faults rewrites it"


def test_every_fault_has_a_row() -> None:
    rows = [line for line in tables().splitlines() if line.startswith("| `")]
    assert len(rows) == len(CATALOGUE)
    assert {row.split("`")[1] for row in rows} == {fault.id for fault in CATALOGUE}
    assert {row.count(" | ") for row in rows} == {3}, "no cell holds a bar"
