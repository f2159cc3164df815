"""Tuples with a value for every layer, written as short as they can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from archc.codegen.naming import LINE, literal


def sequence(name: str, values: Sequence[str | float]) -> str:
    """The tuple `name` as a Python expression: (("local",) * 5 + ("global",)) * 3."""
    count = len(values)
    period = next(n for n in range(1, count + 1) if tuple(values[:n]) * (count // n) == tuple(values))
    line = _sum_of_runs(values[:period])
    if period < count:
        line = f"{f'({line})' if ' + ' in line else line} * {count // period}"
    if len(f"{name} = {line}") <= LINE:
        return line
    rows = [f"*({literal(value)},) * {run}" if run > 1 else literal(value) for value, run in _runs(values)]
    return "(\n" + "".join(f"    {row},\n" for row in rows) + ")"


def _runs(values: Sequence[str | float]) -> list[tuple[str | float, int]]:
    return [(value, len(list(run))) for value, run in groupby(values)]


def _sum_of_runs(values: Sequence[str | float]) -> str:
    runs = _runs(values)
    if 1 < len(runs) == len(values):
        return f"({', '.join(map(literal, values))})"
    return " + ".join(f"({literal(value)},)" + (f" * {run}" if run > 1 else "") for value, run in runs)
