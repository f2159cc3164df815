"""Positions at which a model changes what it does: windows fill, scalings begin, training ended."""

from __future__ import annotations

from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.validation.probes import mixers

_FIRST = 16


@dataclass(frozen=True, slots=True)
class Mark:
    """From this position on something is different: `name` says what, `field` where the spec declares it."""

    position: int
    name: str
    field: str


def marks_of(architecture: Architecture, length: int) -> list[Mark]:
    """The marks of an Architecture among positions 1 to `length` - 1, in order."""
    trained = architecture.trained_context or architecture.context
    found = {
        Mark(trained, "trained length ends", "trained_context"),
        Mark(architecture.context, "context ends", "context"),
    }
    for mixer in mixers(architecture):
        found |= {
            Mark(size, f"{declared.rpartition('.')[2].replace('_', ' ')} of {size:,} is full", declared)
            for declared, size in mixer.shows_beyond
        }
        if mixer.rope is not None and mixer.rope.original_context is not None:
            original = mixer.rope.original_context
            found.add(Mark(original, "original context of the scaling ends", "position.scaling.original_context"))
    return sorted((mark for mark in found if 0 < mark.position < length), key=lambda one: (one.position, one.name))


def edges_of(length: int, marks: list[int]) -> list[int]:
    """Where buckets of positions begin and end: at every mark, else at powers of two and half-way between them.

    A regular edge close to a mark gives way to it, so that no bucket is a sliver.
    """
    regular, width = [_FIRST], _FIRST
    while width < length:
        regular += [width * 3 // 2, width * 2]
        width *= 2
    fixed = sorted({0, length, *marks})
    kept = [edge for edge in regular if all(4 * abs(edge - mark) >= min(edge, mark) for mark in fixed[1:])]
    return sorted({edge for edge in (*fixed, *kept) if edge <= length})
