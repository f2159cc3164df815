"""Tuples with a value for every layer, written as short as they can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from archc.codegen.naming import LINE, literal


def sequence(name: str, values: Sequence[str | float]) -> str:
    """The tuple `name` as a Python expression: ("first",) + (("local",) * 3 + ("global",)) * 9."""
    terms = min(_ways(values), key=lambda terms: len(" + ".join(terms)))
    line = " + ".join(terms)
    if len(f"{name} = {line}") <= LINE:
        return line
    rows = [row for term in terms for row in _rows(term)]
    if max(map(len, rows)) > LINE - len("    ,"):
        rows = [f"*({literal(value)},) * {run}" if run > 1 else literal(value) for value, run in _runs(values)]
    return "(\n" + "".join(f"    {row},\n" for row in rows) + ")"


def _rows(term: str) -> list[str]:
    """A term of a sum of tuples as what stands in a tuple on lines of their own."""
    simple = term.endswith(")") and "(" not in term[1:]
    return term[1:-1].rstrip(",").split(", ") if simple else [f"*{term}"]


def _ways(values: Sequence[str | float]) -> Iterator[list[str]]:
    """Sums that give the values: of runs, and of runs around something that is repeated."""
    yield _sum_of_runs(values)
    for start in range(len(values)):
        for period in range(2, (len(values) - start) // 2 + 1):
            once, end = values[start : start + period], start + period
            while values[end : end + period] == once:
                end += period
            if end > start + period:
                inner = " + ".join(terms := _sum_of_runs(once))
                repeated = f"{f'({inner})' if len(terms) > 1 else inner} * {(end - start) // period}"
                yield [*_sum_of_runs(values[:start]), repeated, *_sum_of_runs(values[end:])]


def _sum_of_runs(values: Sequence[str | float]) -> list[str]:
    runs = _runs(values)
    if 1 < len(runs) == len(values):
        return [f"({', '.join(map(literal, values))})"]
    return [f"({literal(value)},)" + (f" * {run}" if run > 1 else "") for value, run in runs]


def _runs(values: Sequence[str | float]) -> list[tuple[str | float, int]]:
    return [(value, len(list(run))) for value, run in groupby(values)]
