"""Where port and reference part: the first canonical point at which they differ by more than arithmetic can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from archc.validation.parity import ProbeResult
from archc.validation.reference import Reference
from archc.validation.tracing import layer_of
from archc.validation.yardstick import Yardstick


@dataclass(frozen=True, slots=True)
class Divergence:
    """A canonical point, its layer if it has one, and how far apart port and reference are there."""

    layer: int | None
    point: str
    times_floor: float


def first_of(beyond: Mapping[str, float]) -> Divergence | None:
    """The first of the points beyond the bound, which are in order."""
    for point, times in beyond.items():
        return Divergence(layer_of(point), point, times)
    return None


def first_divergence(reference: Reference, ours: Mapping[str, Tensor], failed: ProbeResult) -> Divergence | None:
    """The first of a port's points on a probe that lies beyond the bound; None if none does.

    This is for a port that runs by itself, its layers fed with its own mistakes. The reference makes the choices that
    explain the port as far as it can be explained.
    """
    yardstick = Yardstick(reference, failed.probe, failed.choices, fed=False)
    return first_of(yardstick.beyond(yardstick.times(ours)))
