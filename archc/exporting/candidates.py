"""Values that a key of a config could have to make a field what it should be.

A key is seldom more than a simple function away from the field: the number itself, its inverse, a power, a product or
quotient with a size; a switch; a name; one entry for each layer, or the numbers of the layers that are of one kind.
What is proposed here is only ever a guess: `solve` keeps what importing confirms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isfinite, nextafter
from typing import Any, Final

from archc.exporting.outline import Difference, Outline
from archc.families.common import ACTIVATIONS

_POWERS: Final = (1, -1, -2, 2, -0.5, 0.5)
_SHORT: Final = 12
"""Digits of a short number that may have been meant by a long one: 1.4, not 1.4000000000000001."""
_CLOSE: Final = 1e-9
_LARGEST: Final = 1e18
_LARGEST_COUNT: Final = 2**24
"""Beyond, a whole number is only tried where the spec has it: config classes make lists that are as long."""


def for_key(current: object, wrong: Sequence[Difference], wanted: Outline, sizes: Sequence[float]) -> Iterator[object]:
    """Values for a key that is now `current`, where the fields in `wrong` depend on it.

    `sizes` are the numbers that fields may be multiples or fractions of.
    """
    goals = list(dict.fromkeys(difference.wanted for difference in wrong if _plain(difference.wanted)))
    if isinstance(current, bool):
        yield not current
    if isinstance(current, str) or current is None:
        for goal in goals:
            if isinstance(goal, str):
                yield from [name for name, meaning in ACTIVATIONS.items() if meaning == goal] or [goal]
    if not isinstance(current, (str, list, tuple, dict)):
        for goal in goals:
            if isinstance(goal, (int, float)) and not isinstance(goal, bool):
                yield from _numbers(goal, sizes, whole=isinstance(current, int) and float(goal).is_integer())
        yield from (None, False, True) if current is None else ()
        if isinstance(current, (int, float)) and not isinstance(current, bool):
            yield from (0, 1, *_bounds(wrong, len(wanted.layers)))
        yield None
    if isinstance(current, (list, tuple)) or current is None:
        yield from _lists(current, wrong, wanted)


def _plain(value: object) -> bool:
    return isinstance(value, (int, float, str))


def _numbers(goal: float, sizes: Sequence[float], *, whole: bool) -> Iterator[float]:
    """A number, and what it could be made of."""
    if not whole:
        yield goal
    found: list[float] = [goal]
    for size in dict.fromkeys(sizes):
        if size:
            found += (goal / size, goal * size, size / goal if goal else goal, goal - size)
    found += (2 * (goal - 1), 2 * goal, goal / 2)
    if goal > 0:
        found += (_power(goal, exponent) for exponent in _POWERS)
        for size in (size for size in dict.fromkeys(sizes) if size > 0):
            found += (_power(goal / size, -2), _power(goal * size, -2), goal * size**0.5)
    found = [value for value in dict.fromkeys(found) if isfinite(value) and abs(value) < _LARGEST]
    near = [value for value in found if abs(value - round(value)) < _CLOSE * max(1, abs(value))]
    yield from (round(value) for value in near if abs(value) < _LARGEST_COUNT or value == goal)
    if not whole:
        yield from (float(f"{value:.{_SHORT}g}") for value in found)
        yield from map(float, found)
        yield from (nextafter(value, side) for side in (inf, -inf) for value in found)


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return inf


def _bounds(wrong: Sequence[Difference], layers: int) -> Iterator[int]:
    """Where layers change their kind, and how far apart."""
    numbers = sorted({difference.layer for difference in wrong if difference.layer is not None})
    if numbers:
        others = sorted(set(range(layers)) - set(numbers))
        yield from dict.fromkeys((numbers[0], numbers[-1] + 1, len(numbers), len(others), *others[:1]))
        yield from range(2, min(layers, 9))


def _lists(current: Any, wrong: Sequence[Difference], wanted: Outline) -> Iterator[list[object]]:
    """A value for every layer, or the numbers of the layers that are alike; a list of another length, changed once."""
    count = len(wanted.layers)
    if current and len(current) != count and all(isinstance(entry, float) for entry in current):
        goals = dict.fromkeys(d.wanted for d in wrong if isinstance(d.wanted, (int, float)))
        yield from ([*current[:i], float(goal), *current[i + 1 :]] for i in range(len(current)) for goal in goals)
        return
    for path in dict.fromkeys(difference.path for difference in wrong if difference.layer is not None):
        column = [wanted.at(layer, path) for layer in range(count)]
        if any(isinstance(value, (int, float)) for value in column):
            yield [0 if value is None else value for value in column]
        for value in dict.fromkeys(map(repr, column)):
            alike = [layer for layer, other in enumerate(column) if repr(other) == value]
            yield list(alike)
            yield [int(layer in alike) for layer in range(count)]
