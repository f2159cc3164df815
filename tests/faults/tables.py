"""All plantings of architecture faults, and those that diagnosis does not name, with the reason."""

from __future__ import annotations

from tests.faults import attention, ends, feed_forward, norms, positions
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

UNNAMED: dict[str, str] = {
    "ffn.router.order=top_k_then_score-qwen3_moe": "a softmax of the chosen is a softmax of all, renormalised: that is "
    "named, as ffn.router.renormalize",
}
"""Plantings that another fault is named for, each with the reason."""
