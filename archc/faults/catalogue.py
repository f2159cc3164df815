"""All faults, in the order in which a port is searched for them: the likeliest first."""

from __future__ import annotations

from archc.faults import (
    attention,
    ends,
    experts,
    feed_forward,
    inner_norms,
    layout_places,
    layout_rows,
    norms,
    positions,
    residuals,
    runtime_cache,
    runtime_formulas,
    runtime_masks,
    runtime_types,
    scalings,
)
from archc.faults.base import Fault

_LIKELIEST = (
    "position.pairing",
    "norm.eps",
    "attention.window",
    "attention.window.layers",
    "position.base",
    "attention.grouping",
    "norm.weight",
    "ffn.activation",
    "attention.scale",
    "position.scaling",
    "ffn.router.renormalize",
    "embedding.scale",
    "position.partial",
    "position.kind",
)
"""What public reports name most often."""

_ALL = (
    *positions.FAULTS,
    *norms.FAULTS,
    *attention.FAULTS,
    *scalings.FAULTS,
    *inner_norms.FAULTS,
    *feed_forward.FAULTS,
    *experts.FAULTS,
    *ends.FAULTS,
    *residuals.FAULTS,
    *layout_rows.FAULTS,
    *layout_places.FAULTS,
    *runtime_cache.FAULTS,
    *runtime_masks.FAULTS,
    *runtime_formulas.FAULTS,
    *runtime_types.FAULTS,
)

CATALOGUE: tuple[Fault, ...] = tuple(
    sorted(_ALL, key=lambda fault: _LIKELIEST.index(fault.id) if fault.id in _LIKELIEST else len(_LIKELIEST))
)
