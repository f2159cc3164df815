"""A logarithmic axis: places in percent of its length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Scale(NamedTuple):
    """An axis from one power of ten to another, by their exponents."""

    low: int
    high: int

    @classmethod
    def over(cls, figures: Iterable[float | None], *always: float) -> Scale:
        """The shortest that has a place for all `figures` above zero that are numbers, and for those `always` there."""
        found = [figure for figure in (*figures, *always) if figure is not None and figure > 0]
        low = math.floor(math.log10(min(found)))
        return cls(low, max(low + 1, math.ceil(math.log10(max(found)))))

    def at(self, figure: float | None) -> float:
        """Where a figure lies, in percent: smaller ones at the low end; None, which is infinite, at the high end."""
        if figure is None:
            return 100.0
        if figure <= 0:
            return 0.0
        return round(100 * min(1.0, max(0.0, (math.log10(figure) - self.low) / (self.high - self.low))), 2)

    def ticks(self, most: int = 6) -> list[tuple[float, float]]:
        """Places of powers of ten, about as many as can be read at `most`, and the powers."""
        step = -(-(self.high - self.low) // most)
        return [(self.at(10.0**power), 10.0**power) for power in range(self.low, self.high + 1) if power % step == 0]
