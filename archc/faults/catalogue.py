"""All faults, in the order in which a port is searched for them: the likeliest first."""

from __future__ import annotations

from archc.faults import (
    layout_places,
    layout_rows,
    positions,
    runtime_cache,
    runtime_formulas,
    runtime_masks,
    runtime_types,
)
from archc.faults.base import Fault

CATALOGUE: tuple[Fault, ...] = (
    *positions.FAULTS,
    *layout_rows.FAULTS,
    *layout_places.FAULTS,
    *runtime_cache.FAULTS,
    *runtime_masks.FAULTS,
    *runtime_formulas.FAULTS,
    *runtime_types.FAULTS,
)
