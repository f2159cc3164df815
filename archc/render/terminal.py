"""The terminal: one console for all commands, and the small tables of `list` and `check`.

Lines are laid out here and never wrapped, so that they read the same in a terminal, in a pipe and in a log. Colour
appears only on a terminal, and NO_COLOR turns it off (https://no-color.org).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import IO, NoReturn

from rich.console import Console
from rich.text import Text

from archc.analysis import Report
from archc.render.units import decimal_bytes, exact, short_count
from archc.spec.diagnostics import printable

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""
PROSE_WIDTH = 88
"""Columns that text is wrapped to, however wide the terminal is."""

Row = tuple[str, ...]


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave a reader that went away to `archc.cli.main`: rich would end the program with the code for findings."""
        raise BrokenPipeError


def console(stream: IO[str] | None = None) -> Console:
    """A console on `stream`, by default standard output."""
    stream = stream or sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_list(specs: Iterable[tuple[str, Report]], out: Console) -> None:
    """A table of shipped specs by name."""
    for index, line in enumerate(aligned(list_rows(specs), right={1, 2, 3, 4})):
        out.print(Text(line, style="bold" if index == 0 else ""))


def list_rows(specs: Iterable[tuple[str, Report]]) -> list[Row]:
    """The cells of that table, its head first; figures of a mixture's active part only where it has one."""
    rows: list[Row] = [("name", "params", "active", "context", "KV/token", "besides")]
    for name, report in specs:
        params, cache = report["params"], report["kv_cache"]
        besides = (("w", cache["window_bytes_per_token"]), ("s", cache["fixed_state_bytes"]))
        active = "" if params["active"] == params["total"] else short_count(params["active"])
        rows.append(
            (
                name,
                short_count(params["total"]),
                active,
                exact(report["context"]),
                decimal_bytes(cache["bytes_per_token"]),
                " ".join(f"{mark} {decimal_bytes(size)}" for mark, size in besides if size),
            )
        )
    return rows


def print_passed(target: str, params: int, claims: int, advice: Mapping[str, int], out: Console) -> None:
    """The line of a spec without errors; `advice` counts what it was given, by level."""
    parts = [f"{short_count(params)} parameters"]
    if claims:
        parts.append(f"{claims} published figure{'' if claims == 1 else 's'} reproduced")
    parts += (f"{count} {level}{'' if count == 1 else 's'}" for level, count in advice.items() if count)
    out.print(Text.assemble((printable(target), "bold"), (": ok", "green"), ", ", ", ".join(parts)))


def print_failed(target: str, errors: int, out: Console) -> None:
    """The line of a spec with errors."""
    count = f"{errors} error{'' if errors == 1 else 's'}"
    out.print(Text.assemble((printable(target), "bold"), ": ", (count, "red")))


def aligned(rows: Iterable[Row], right: set[int]) -> list[str]:
    """Rows as lines of aligned columns, two spaces apart; those in `right` end together."""
    rows = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
