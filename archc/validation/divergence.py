"""Where port and reference part: the first canonical point at which they differ by more than arithmetic can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from archc.validation.parity import BOUND, NUDGES, ProbeResult, deviation, floor_of
from archc.validation.reference import Reference


@dataclass(frozen=True, slots=True)
class Divergence:
    """A point (`embed`, `layers.N.out`, `final_norm`, `logits`), its layer if it has one, and how far apart it is."""

    layer: int | None
    point: str
    times_floor: float


def first_divergence(reference: Reference, ours: Mapping[str, Tensor], failed: ProbeResult) -> Divergence | None:
    """The first of the port's points on a probe that lies beyond BOUND floors of the reference's; None if none does.

    Points that one side lacks, or gives in another shape, are passed over.

    The floor of a point comes from one run with all weights moved by one unit in the last place. The reference makes
    the choices that explain the port as far as it can be explained.
    """
    judged = failed.probe.real
    theirs = reference.points(failed.probe, failed.choices)
    with reference.nudged(NUDGES):
        nudged = reference.points(failed.probe, failed.choices)
    for point, expected in theirs.items():
        if point not in ours or ours[point].shape != expected.shape:
            continue
        floor = floor_of([deviation(nudged[point], expected, judged)], expected[judged])
        times = floor.times(deviation(ours[point], expected, judged))
        if times > BOUND:
            number = point.split(".")[1] if point.startswith("layers.") else None
            return Divergence(int(number) if number else None, point, times)
    return None
