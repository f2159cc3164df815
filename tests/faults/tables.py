"""All plantings, and those that diagnosis does not name, with the reason."""

from __future__ import annotations

from tests.faults import attention, ends, feed_forward, layouts, norms, positions, running
from tests.faults.planting import Planting

ARCHITECTURE: tuple[Planting, ...] = (
    *positions.PLANTINGS,
    *positions.SCALINGS,
    *norms.PLANTINGS,
    *norms.INNER,
    *attention.PLANTINGS,
    *feed_forward.DENSE,
    *feed_forward.EXPERTS,
    *ends.PLANTINGS,
)

LAYOUT_AND_RUNTIME: tuple[Planting, ...] = (*layouts.PLANTINGS, *running.PLANTINGS)

UNNAMED: dict[str, str] = {
    "ffn.router.order=top_k_then_score-qwen3_moe": "a softmax of the chosen is a softmax of all, renormalised: that is "
    "named, as ffn.router.renormalize",
    "attention.window=none@0-gemma2": "a first layer that takes the window of the layer behind it has none either",
    "residual.by_depth=false-zoo/beam": "in front of the final norm a factor of the whole stream is another eps",
}
"""Plantings that another fault is named for, each with the reason."""
