"""All faults, in the order in which a port is searched for them: the likeliest first."""

from __future__ import annotations

from archc.faults import (
    attention,
    ends,
    experts,
    feed_forward,
    inner_norms,
    norms,
    positions,
    residuals,
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
)

CATALOGUE: tuple[Fault, ...] = tuple(
    sorted(_ALL, key=lambda fault: _LIKELIEST.index(fault.id) if fault.id in _LIKELIEST else len(_LIKELIEST))
)
