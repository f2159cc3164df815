"""The formulas of a report: letters with their numbers, then a figure to a line, with what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from archc.formulas.report import Formulas
from archc.formulas.text import condition, formula
from archc.render.units import exact

_SAME_AS_TOTAL = {
    "params.active": "params.total",
    "params.active_without_embeddings": "params.total_without_embeddings",
}


def print_formulas(found: Formulas, report: Mapping[str, Any], out: Console) -> None:
    """Print the formulas of a model whose figures are in `report`."""
    for line in formula_lines(found, report):
        out.print(line)


def formula_lines(found: Formulas, report: Mapping[str, Any]) -> Iterator[Text]:
    """The lines; figures that are 0, and those of active parameters where all are, are left out."""
    yield Text(f"{report['name']} in formulas", style="bold")
    for symbol in found.symbols:
        yield Text(f"  {formula(symbol.symbol):<3} {symbol.field:<22} {symbol.value:>12,}")
    yield Text()
    for key, expression in found.figures.items():
        same = _SAME_AS_TOTAL.get(key)
        if expression == 0 or (same and expression == found.figures[same]):
            continue
        section, name = key.split(".")
        yield Text.assemble((key, "bold"), f" = {formula(expression)}")
        yield Text(f"    = {exact(report[section][name])}", style="dim")
    if found.conditions:
        yield Text()
        yield Text(f"as long as {', '.join(condition(one) for one in found.conditions)}", style="dim")


def formulas_document(found: Formulas) -> dict[str, Any]:
    """The same for scripts: expressions in Python's syntax, with `floor` and `Mod` as sympy has them."""
    return {
        "symbols": {symbol.letter: {"field": symbol.field, "value": symbol.value} for symbol in found.symbols},
        "expressions": {key: str(expression) for key, expression in found.figures.items()},
        "hold_while": [str(one) for one in found.conditions],
    }
