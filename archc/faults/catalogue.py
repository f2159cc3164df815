"""All faults, in the order in which a port is searched for them: the likeliest first."""

from __future__ import annotations

from archc.faults import positions
from archc.faults.base import Fault

CATALOGUE: tuple[Fault, ...] = (*positions.FAULTS,)
