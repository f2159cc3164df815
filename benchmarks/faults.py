"""The page about faults: its tables come of the catalogue.

python -m benchmarks.faults   rewrites docs/faults.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from archc.cli.known_faults import KINDS
from archc.faults.base import Fault
from archc.faults.catalogue import CATALOGUE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults.md"
BEGIN, END = "<!-- faults -->\n", "<!-- /faults -->"


def main() -> None:
    """Rewrite what stands between the marks."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(before + tables() + after, encoding="utf-8", newline="\n")


def tables() -> str:
    """A table for each kind of fault."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    for kind, words in KINDS.items():
        found = [fault for fault in CATALOGUE if fault.kind == kind]
        yield from ("", f"### {words}", "")
        yield from ("| fault | what ports get wrong | found in | reports |", "|---|---|---|---|")
        for fault in found:
            name = f"`{fault.id}`{_field(fault)}{', loud' if fault.loud else ''}"
            yield f"| {name} | {_cell(fault.wrong)} | {_cell(fault.when)} | {_reports(fault)} |"
    yield ""


def _field(fault: Fault) -> str:
    return "" if fault.id == fault.field or fault.id.startswith(f"{fault.field}.") else f" (`{fault.field}`)"


def _reports(fault: Fault) -> str:
    return " ".join(
        f"[{one.partition('/')[2]}](https://github.com/{one.replace('#', '/issues/')})" for one in fault.seen
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
