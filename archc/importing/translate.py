"""Asks a family's table for everything that a spec says, and notes where every answer came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from archc.families.base import Key, Source, Table
from archc.importing.reading import Reading
from archc.spec.language import SECTIONS


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of the spec: None, a scalar, or a list.

    `keys` of the config lead to it; `unstated` are those among them that the config does not state.
    """

    value: object
    keys: tuple[str, ...] = ()
    unstated: tuple[str, ...] = ()

    def same(self, other: object) -> bool:
        """Whether another leaf has the same value (1 and 1.0 and true are three values)."""
        return isinstance(other, Leaf) and repr(self.value) == repr(other.value)


Tree = dict[str, "Leaf | Tree | list[Tree]"]


@dataclass(frozen=True, slots=True)
class Translation:
    """The header of a spec, and the sections of every layer."""

    header: Tree
    layers: tuple[Tree, ...]


def translate(table: Table, reading: Callable[[int], Reading], layers: int) -> Translation:
    """Everything that the table says; `reading` gives a fresh look at the config for each layer."""
    per_layer = {path: source for path, source in table.items() if path.split(".")[0] in SECTIONS}
    once = {path: source for path, source in table.items() if path not in per_layer}
    return Translation(_tree(once, reading, 0), tuple(_tree(per_layer, reading, layer) for layer in range(layers)))


def answer(source: Source, look: Reading) -> object:
    """What a source says of the config that `look` reads."""
    if isinstance(source, Key):
        return getattr(look, source.name)
    return source(look) if callable(source) else source


def _tree(table: Table, reading: Callable[[int], Reading], layer: int) -> Tree:
    tree: Tree = {}
    for path, source in table.items():
        found = _resolved(source, reading, layer)
        if found is None:
            continue
        *steps, last = path.split(".")
        place = tree
        for step in steps:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # the section itself is null: what it would hold is left out
            place = inner
        else:
            known = place.get(last)
            if isinstance(known, dict) and isinstance(found, dict):
                known.update(found)
            else:
                place[last] = found
    return tree


def _resolved(source: Source, reading: Callable[[int], Reading], layer: int) -> Leaf | Tree | list[Tree] | None:
    """A leaf, a section, or a list of sections; None for what is left out."""
    look = reading(layer)
    value = answer(source, look)
    if isinstance(value, Mapping):
        inner = {key: _resolved(part, reading, layer) for key, part in value.items()}
        return {key: part for key, part in inner.items() if part is not None}
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        return [tree for entry in value if isinstance(tree := _resolved(entry, reading, layer), dict)]
    if value is None:
        return None
    if value is NULL:
        value = None
    unstated = tuple(key for key, stated in look.read.items() if not stated)
    return Leaf(list(value) if isinstance(value, tuple) else value, tuple(look.read), unstated)


class _Null:
    """A null that is written, such as `attention: null`, where a table's None leaves the field out."""


NULL: Final[Any] = _Null()
