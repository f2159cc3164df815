"""Whether a model can be validated whole: what that takes, and what there is. Nothing is loaded to know it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archc.checkpoints.headers import StoredTensor

_MEMINFO: Final = Path("/proc/meminfo")
_WIDE: Final = {4: 8, 2: 4}
"""Bytes of a number in the arithmetic that the floor is also measured in, by those of the run's own."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Bytes that a run with whole models needs for weights alone, and bytes that are free: None where it is unknown."""

    needed: int
    available: int | None

    @property
    def fits(self) -> bool:
        """Whether whole models fit, as far as is known."""
        return self.available is None or self.needed <= self.available


def fitting_of(tensors: Iterable[StoredTensor], item_bytes: int) -> Fitting:
    """The port in numbers of `item_bytes`, beside the reference as it is at its widest: in fp64, or fp32 of 16 bits."""
    numbers = sum(math.prod(tensor.shape) for tensor in tensors)
    return Fitting(numbers * (item_bytes + _WIDE.get(item_bytes, item_bytes)), available_bytes())


def available_bytes() -> int | None:
    """What new work may take without swapping, as Linux states it; None elsewhere."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    found = dict(line.partition(":")[::2] for line in lines)
    kib = found.get("MemAvailable", "").split()
    return int(kib[0]) * 1024 if kib and kib[0].isdigit() else None
