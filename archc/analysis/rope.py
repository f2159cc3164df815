"""The rotary table of a model in figures that a person can check.

Pair i turns by f_i radians per position, so it is back where it started after 2π / f_i positions: its period. The
fastest pair tells neighbours apart, the slowest should not come round within the context.
"""

from __future__ import annotations

from collections import Counter
from math import tau
from typing import NotRequired, TypedDict, cast

from archc.analysis.layers import typical_layer
from archc.architecture.model import Architecture
from archc.parts.position import Rope


class ScalingCounts(TypedDict):
    """How many pairs a scaling leaves alone, blends and slows down fully."""

    kind: str
    unchanged: int
    blended: int
    stretched: int


class RopeFigures(TypedDict):
    """One rotary table. Periods are positions per turn, after scaling."""

    pairs: int
    base: float
    pairing: str
    fastest_period: float
    slowest_period: float
    attention_factor: float
    """What cosines and sines are multiplied by."""
    scaling: ScalingCounts | None


class RopeSection(RopeFigures):
    """The table of the most common kind of layer that rotates."""

    by_kind: NotRequired[dict[str, RopeFigures | None]]
    """Where kinds of layer differ: the table of each, null for a kind that does not rotate."""


def rope_section(architecture: Architecture, *, context: int) -> RopeSection | None:
    """The rotary tables of a model for inputs of `context` positions; None for a model that never rotates.

    The length matters for scalings that depend on it (`Rope.length_matters`).
    """
    kinds = {
        layer.kind: next((mixer.rope for mixer in layer.mixers() if mixer.rope), None)
        for layer, _ in architecture.distinct
    }
    typical = typical_layer(architecture, lambda layer: kinds[layer.kind] is not None)
    rope = kinds[typical.kind] if typical else None
    if rope is None:
        return None
    section = cast(RopeSection, rope_figures(rope, length=context))
    if len(set(kinds.values())) > 1:
        section["by_kind"] = {
            kind: None if rope is None else rope_figures(rope, length=context) for kind, rope in kinds.items()
        }
    return section


def rope_figures(rope: Rope, *, length: int) -> RopeFigures:
    """The figures of one table, for inputs of `length` positions."""
    periods = [tau / frequency for frequency in rope.frequencies(length) if frequency]
    return RopeFigures(
        pairs=len(periods),
        base=rope.base,
        pairing=rope.pairing,
        fastest_period=min(periods),
        slowest_period=max(periods),
        attention_factor=rope.amplitude(length),
        scaling=_scaling(rope),
    )


def _scaling(rope: Rope) -> ScalingCounts | None:
    if rope.scaling is None:
        return None
    fates = Counter("unchanged" if k == 1 else "stretched" if k == 0 else "blended" for k in rope.kept())
    return ScalingCounts(
        kind=rope.scaling.kind,
        unchanged=fates["unchanged"],
        blended=fates["blended"],
        stretched=fates["stretched"],
    )
