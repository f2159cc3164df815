"""Holding a tree against the language: msgspec reads what is valid; only for what is not, pydantic says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from archc.parts.base import Fields, Finding
from archc.spec.diagnostics import Diagnostic, Level, Span
from archc.spec.source import Node, entries

_LEVELS: Final = {"E": Level.ERROR, "W": Level.WARNING, "N": Level.NOTE}
Model = TypeVar("Model", bound=Fields)
GUESSES = 20
"""Problems of a section for which the nearest known key is looked for: each look takes long."""


def validate(model: type[Model], node: Node, inside: tuple[str, ...] = ()) -> Model | list[Diagnostic]:
    """An instance of `model`, or everything that is wrong with `node`, with places.

    `inside` is the path that leads to `node` in the spec.
    """
    try:
        return msgspec.convert(node.plain(), model)
    except msgspec.ValidationError:
        from archc.spec.diagnose import diagnose

        return diagnose(model, node, inside)


def well_formed(model: type[Fields], node: Node) -> dict[str, Any]:
    """Those fields of `node` that are valid on their own, whatever is wrong with the others."""
    found: dict[str, Any] = {}
    values = entries(node)
    hints = get_type_hints(model, include_extras=True)
    for name in model.__struct_fields__:
        if name in values:
            with suppress(msgspec.ValidationError):
                found[name] = msgspec.convert(values[name].plain(), hints[name])
    return found


def at_path(node: Node, path: Iterable[str | int]) -> Span:
    """The place of the value at `path`; where the path ends early, of the key that leads there."""
    found = node.find(tuple(path))
    return found.span if not isinstance(found.value, Mapping) else found.key_span or found.span


def located(finding: Finding, root: Node) -> Diagnostic:
    """What a check has found, at the place that its path leads to from `root`."""
    level = _LEVELS[finding.code[0]]
    place = at_path(root, finding.path)
    return Diagnostic(finding.code, level, finding.message, finding.mend, place, ".".join(finding.path))


def suggest(word: str, known: Iterable[str], *, guess: bool = True) -> str:
    """A mend for a word that is none of `known`: the nearest one, if it may be guessed, or all of them."""
    import difflib

    words = list(known)
    near = difflib.get_close_matches(word[:100], words, 1, 0.5) if guess else []
    return f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(words)}"
