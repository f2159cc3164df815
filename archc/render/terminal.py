"""The terminal: one console for all commands, and the small tables of `list` and `check`.

Lines are laid out here and never wrapped, so that they read the same in a terminal, in a pipe and in a log. Colour
appears only on a terminal, and NO_COLOR turns it off (https://no-color.org).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, NoReturn

from rich.console import Console
from rich.text import Text

from archc.render.units import decimal_bytes, exact, short_count
from archc.spec.diagnostics import printable

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""

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


def wants_colour(stream: IO[str]) -> bool:
    """Whether text that archc colours itself may carry colours on this stream."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class ListedSpec:
    """One line of `archc list`."""

    name: str
    params: int
    active: int
    context: int
    kv_bytes_per_token: int
    window_bytes_per_token: int


def print_list(specs: Sequence[ListedSpec], out: Console) -> None:
    """A table of specs. `+` marks bytes that stop once the windows are full."""
    rows: list[Row] = [("name", "params", "active", "context", "KV bytes/token")]
    for spec in specs:
        growing = decimal_bytes(spec.kv_bytes_per_token)
        window = f" + {decimal_bytes(spec.window_bytes_per_token)} in windows" if spec.window_bytes_per_token else ""
        active = "" if spec.active == spec.params else short_count(spec.active)
        rows.append((spec.name, short_count(spec.params), active, exact(spec.context), growing + window))
    for index, line in enumerate(_aligned(rows, right={1, 2, 3})):
        out.print(Text(line, style="bold" if index == 0 else ""))


def print_passed(target: str, params: int, claims: int, warnings: int, out: Console) -> None:
    """The line of a spec without errors."""
    parts = [f"{short_count(params)} parameters"]
    if claims:
        parts.append(f"{claims} published figure{'' if claims == 1 else 's'} reproduced")
    if warnings:
        parts.append(f"{warnings} warning{'' if warnings == 1 else 's'}")
    out.print(Text.assemble((printable(target), "bold"), (": ok", "green"), ", ", ", ".join(parts)))


def print_failed(target: str, errors: int, out: Console) -> None:
    """The line of a spec with errors."""
    count = f"{errors} error{'' if errors == 1 else 's'}"
    out.print(Text.assemble((printable(target), "bold"), ": ", (count, "red")))


def _aligned(rows: Iterable[Row], right: set[int]) -> list[str]:
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
