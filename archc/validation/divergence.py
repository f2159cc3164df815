"""Where port and reference part: the first canonical point at which they differ by more than arithmetic can."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from archc.validation.parity import BOUND, NUDGES, Floor, deviation
from archc.validation.ports import Port
from archc.validation.probes import Probe
from archc.validation.reference import Reference


@dataclass(frozen=True, slots=True)
class Divergence:
    """A point (`embed`, `layers.N.out`, `final_norm`, `logits`), its layer if it has one, and how far apart it is."""

    layer: int | None
    point: str
    times_floor: float


def first_divergence(reference: Reference, port: Port, probe: Probe) -> Divergence | None:
    """The first point of a whole-pass probe that lies beyond BOUND floors; None where the port cannot be traced.

    The floor of a point comes from one run with all weights moved by one unit in the last place.
    """
    ours = port.points(probe)
    if ours is None:
        return None
    theirs = reference.points(probe)
    with reference.nudged(NUDGES):
        nudged = reference.points(probe)
    for point, expected in theirs.items():
        noise = deviation(nudged[point], expected, probe.real)
        least = torch.finfo(torch.float32).eps * float(expected[probe.real].abs().max())
        floor = Floor(max(noise.max_abs, least), max(noise.rms, least / 8))
        times = floor.times(deviation(ours[point], expected, probe.real))
        if times > BOUND:
            number = point.split(".")[1] if point.startswith("layers.") else None
            return Divergence(int(number) if number else None, point, times)
    return None
