"""What `archc import --explain` prints: where every value of a spec and every tensor of its checkpoint comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from archc.render.terminal import Row, aligned

if TYPE_CHECKING:
    from rich.console import Console

    from archc.checkpoints.manifest import TableRow
    from archc.importing.convert import Imported
    from archc.importing.translate import Leaf

_LAYER = re.compile(r"layers\.(\d+)\.(.+)")


def print_mapping(imported: Imported, table: Iterable[TableRow], out: Console) -> None:
    """A table of fields, and one of stored tensors (N is a layer, E an expert)."""
    fields: list[Row] = [("field", "value", "layers", "read from"), *_fields(imported)]
    tensors: list[Row] = [("stored tensor", "fills", "layout"), *map(_tensor, table)]
    for rows in (fields, tensors):
        for index, line in enumerate(aligned(rows, right=set())):
            out.print(Text(line, style="bold" if index == 0 else ""))
        if rows is fields:
            out.print("")
    if len(tensors) == 1:
        out.print("(where this family stores its tensors is not known: it is sized alone)")


def origin(leaf: Leaf) -> str:
    """Where a value comes from: `config`, a `default` of the reference's class, or the `class` itself, its code."""
    return "class" if not leaf.keys else "default" if leaf.unstated else "config"


def _fields(imported: Imported) -> Iterator[Row]:
    """A row for each value of each field; of a field that layers share, with the layers that have it."""
    layers_of: dict[tuple[str, str, str], list[int]] = {}
    for path, leaf in imported.values:
        if path in ("archc", "name"):
            continue
        found = _LAYER.fullmatch(path)
        field = found[2] if found else path
        key = (field, json.dumps(leaf.value), _source(leaf))
        layers_of.setdefault(key, []).extend([int(found[1])] if found else [])
    count = 1 + max((layer for layers in layers_of.values() for layer in layers), default=-1)
    for (field, value, source), layers in layers_of.items():
        yield field, _shortened(value), "" if len(layers) in (0, count) else _ranges(layers), source


def _source(leaf: Leaf) -> str:
    match origin(leaf):
        case "class":
            return "(the reference's code)"
        case "default":
            return f"{', '.join(leaf.keys)} (class default of {', '.join(leaf.unstated)})"
        case _:
            return ", ".join(leaf.keys)


def _shortened(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."


def _ranges(layers: Iterable[int]) -> str:
    """`0-2, 5` for 0, 1, 2, 5; long lists are cut."""
    runs = []
    for _, run in groupby(enumerate(sorted(layers)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        runs.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ", ".join(runs[:6]) + (", ..." if len(runs) > 6 else "")


def _tensor(row: TableRow) -> Row:
    layout = []
    if row.grouped_by or row.groups > 1:
        layout.append(f"interleaved in groups: {row.grouped_by or row.groups}")
    if row.transposed:
        layout.append("transposed")
    if row.flat:
        layout.append("experts flattened")
    return row.stored, " | ".join(row.fills), ", ".join(layout)
