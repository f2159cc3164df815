"""Flips: every field that a spec states, with another value, to ask whether anything would show."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Final, Literal

from msgspec.structs import fields

from archc.architecture.build import build
from archc.architecture.model import Architecture
from archc.errors import ArchcError
from archc.faults.base import Fault, Faulty, Layers, Slip
from archc.parts.base import Fields
from archc.parts.kinds import KINDS, fields_of
from archc.spec.language import Header
from archc.spec.load import LoadedSpec, changed
from archc.spec.source import Node

APART: Final = frozenset({"archc", "name", "family", "source", "dtype", "published", "undeclared", "trained_context"})
"""What changes nothing that is computed."""
_KIND: Final = ("layers", "kinds")


def stated_fields(loaded: LoadedSpec) -> list[tuple[str, ...]]:
    """The paths of everything that a spec states, inside kinds of layer too; not of what lies in a list."""
    return [path for path, _ in _leaves(loaded.root) if path[0] not in APART and path[-1] not in ("count", "pattern")]


def field_of(path: tuple[str, ...]) -> str:
    """The field of the language at a path, whichever kind of layer states it."""
    return ".".join(path[3:] if path[:2] == _KIND else path)


def flips(loaded: LoadedSpec, path: tuple[str, ...]) -> Fault:
    """A stated field with other values, as a fault of its own: those with which the spec is still without errors."""
    value = next(node.value for found, node in _leaves(loaded.root) if found == path)

    def slips(architecture: Architecture) -> Iterator[Slip]:
        del architecture
        for other in _others(loaded, path, value):
            try:
                flipped = build(changed(loaded, path, other).spec)
            except ArchcError:
                continue
            yield Slip(str(value), other, _becomes(flipped))

    field = field_of(path)
    return Fault(
        id=field,
        field=field,
        kind="architecture",
        wrong=f"{field} has another value than the spec states.",
        when="specs that state it",
        mend="take the value from the spec",
        slips=slips,
    )


def _becomes(flipped: Architecture) -> typing.Callable[[Faulty, Layers], Faulty]:
    return lambda faulty, layers: Faulty(flipped, faulty.edits, faulty.weights)


def _leaves(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    if isinstance(node.value, Mapping):
        for name, inner in node.value.items():
            yield from _leaves(inner, (*path, name))
    elif node.value is not None and not isinstance(node.value, list | tuple):
        yield path, node


def _others(loaded: LoadedSpec, path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Other values of the type of a field's own, as a person would write them."""
    if isinstance(value, bool):
        yield str(not value).lower()
    elif isinstance(value, int):
        yield from map(str, (value + 1, 2 * value, value - 1))
    elif isinstance(value, float):
        yield from map(repr, (1.25 * value, 0.5 * value))
    elif isinstance(value, str):
        yield from (choice for choice in _choices(loaded, path) if choice != value)


def _choices(loaded: LoadedSpec, path: tuple[str, ...]) -> list[str]:
    """The words that a field can be, if it is one of words."""
    *steps, name = path[3:] if path[:2] == _KIND else path
    kind: type[Fields] | None = Header
    node: Node | None = loaded.root
    for step in steps:
        node = node.value.get(step) if node is not None and isinstance(node.value, Mapping) else None
        stated = node.value.get("kind") if node is not None and isinstance(node.value, Mapping) else None
        word = str(stated.value) if stated is not None else None
        kind = fields_of(step, word) if word and word in KINDS.get(step, ()) else _section(kind, step)
        if kind is None:
            return []
    if name == "kind" and steps and steps[-1] in KINDS:
        return list(KINDS[steps[-1]])
    return [choice for choice in typing.get_args(_type(kind, name)) if isinstance(choice, str)]


def _section(kind: type[Fields] | None, name: str) -> type[Fields] | None:
    """The class of a section that stands in another one."""
    hint = _type(kind, name)
    options = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
    found = [typing.get_args(one)[0] if typing.get_origin(one) is typing.Annotated else one for one in options]
    return next((one for one in found if isinstance(one, type) and issubclass(one, Fields)), None)


def _type(kind: type[Fields] | None, name: str) -> Any:
    if kind is None or name not in {field.name for field in fields(kind)}:
        return None
    hint = typing.get_type_hints(kind)[name]
    inner = [one for one in typing.get_args(hint) if typing.get_origin(one) is Literal]
    return inner[0] if inner else hint
