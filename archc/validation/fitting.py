"""Numbers of unknown value: which value of a number brings a model nearest to a port?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from archc.faults.tunable import Tunable, logarithmic

_VALUES: Final = 13
_SECTIONS: Final = 6
_PROMISING: Final = 0.4
"""A number is narrowed down further where this many sections bring the model this much nearer than the right one."""
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_PRECISION: Final = 1e-7
_DIGITS: Final = 7


def fitted(
    tunable: Tunable, declared: float, nearness: Callable[[float], float], late: Callable[[], bool]
) -> Iterator[float]:
    """Values of a number with which a model may be the port, the one with the fewest digits first.

    `nearness` says how far the model with a value still is from the port, 1 for the declared one. Nothing is given
    where no value brings the model near, or when it is late.
    """
    found = [(1.0, declared)]
    for value in logarithmic(tunable.low, tunable.high, _VALUES):
        if late():
            return
        found.append((nearness(value), value))
    found.sort(key=lambda one: one[1])
    at = found.index(min(found))
    best = _narrowed(nearness, found[max(at - 1, 0)][1], found[min(at + 1, len(found) - 1)][1], late)
    if best is not None:
        yield from dict.fromkeys(float(f"{best:.{digits}g}") for digits in range(1, _DIGITS + 1))


def _narrowed(nearness: Callable[[float], float], low: float, high: float, late: Callable[[], bool]) -> float | None:
    """The value between two others that comes nearest to the port, by golden sections of the logarithm.

    None where the first few sections do not bring it near.
    """
    a, b = math.log(low), math.log(high)
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_d = nearness(math.exp(c)), nearness(math.exp(d))
    sections = 0
    while b - a > _PRECISION and not late():
        sections += 1
        if sections == _SECTIONS and min(at_c, at_d) > _PROMISING:
            return None
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = nearness(math.exp(c))
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            at_d = nearness(math.exp(d))
    return math.exp((a + b) / 2)
