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

UNNAMED: dict[str, str] = {}
"""Plantings that another fault is named for, each with the reason."""
