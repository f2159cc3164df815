"""How far apart a port and the reference are at each canonical point, in floors of that point.

A floor comes from the reference with all weights moved by one unit in the last place. In 16 bits one unit is so much
that it hides mistakes; where layers are fed, the floor is then how far the reference's own arithmetic is from that of
32 bits, with the same weights and the same inputs of layers, and a port is measured from the latter as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Self

import torch
from torch import Tensor

from archc.errors import IncompleteError
from archc.validation.choices import Choices, noise_of
from archc.validation.parity import BOUND, Distance, Floor, distance, floor_of
from archc.validation.places import Places
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from archc.validation.tracing import Trace, order, split
from archc.validation.views import laid_out, scores

RUNS = 2
"""Runs with moved weights."""
BOUND_16 = 2.5
"""As BOUND, where the floor is that of 16-bit arithmetic."""
GROSS = 64.0
"""So many floors off, and nothing of it in the output of the layer: the point is another thing in the port."""


class Yardstick:
    """The reference's activations on a probe run in one piece, and their floors.

    The reference makes these `choices`, where given; else its own, which are then found here. With `fed`, its layers
    are given in every run what they were given in the first.
    """

    def __init__(self, reference: Reference, probe: Probe, choices: Choices | None, *, fed: bool) -> None:
        self.probe, self.places = probe, reference.places
        self._judged, self._dtype = probe.real, reference.dtype
        self.base, made = reference.trace(probe, choices)
        self.choices = choices or made
        self.entering = self.base.entering if fed else None
        wide = self._wide(reference, probe) if fed and reference.dtype is not torch.float32 else None
        self.rounded = wide is not None
        """Whether the floors are those of 16-bit arithmetic."""
        if wide is None:
            self.bound, self._truth = BOUND, self.base.points
            runs = [self._nudged(reference, probe, seed) for seed in range(RUNS)]
            self._runs = [run.points for run, _ in runs]
        else:
            self.bound, self._truth = BOUND_16, wide[0].points
            runs, self._runs = [wide], [self.base.points]
        self.noise = noise_of(self.choices, [moved for _, moved in runs])

    @classmethod
    def of(cls, probe: Probe, places: Places, base: Trace, runs: list[dict[str, Tensor]]) -> Self:
        """A yardstick in 32 bits of what is known: the first run, and the points of those with moved weights."""
        found = cls.__new__(cls)
        found.probe, found.places, found.base, found.choices = probe, places, base, Choices()
        found.entering, found.rounded, found.bound = base.entering, False, BOUND
        found._judged, found._dtype, found._truth, found._runs = probe.real, torch.float32, base.points, runs
        found.noise = noise_of(found.choices, [])
        return found

    def _nudged(self, reference: Reference, probe: Probe, seed: int) -> tuple[Trace, Choices]:
        with reference.nudged(seed):
            return reference.trace(probe, self.choices, self.entering)

    def _wide(self, reference: Reference, probe: Probe) -> tuple[Trace, Choices] | None:
        """The reference with more digits; None where its class cannot."""
        try:
            with reference.wider_arithmetic():
                return reference.trace(probe, self.choices, self.entering)
        except (IncompleteError, ValueError):
            return None

    def times(self, ours: Mapping[str, Tensor]) -> dict[str, float]:
        """By how many floors each point is off, in order. Points that one side lacks, or has in another form, are not
        among them."""
        found = {point: self._at(point, ours) for point in order(self.base.points) if point in ours}
        return {point: times for point, times in found.items() if times is not None}

    def beyond(self, times: Mapping[str, float], counted: Collection[str] = ()) -> dict[str, float]:
        """The points beyond the bound, but for those that say nothing.

        Where a layer's output agrees, its parts did what they had to, and a point inside that does not agree is another
        thing in the port, which happens to bear the name: so it is in other layers. In 16 bits a layer's output may
        hide what its parts show: those of the `hidden` points that are `counted` all the same.
        """
        beyond = {point: value for point, value in times.items() if value > self.bound}
        silent = self.hidden(times).difference(counted)
        strange = {split(point)[1] for point in silent if self.rounded or beyond[point] > GROSS}
        return {
            point: value
            for point, value in beyond.items()
            if point not in silent and not (split(point)[1] in strange and f"{split(point)[0]}out" in beyond)
        }

    def hidden(self, times: Mapping[str, float]) -> set[str]:
        """The points within layers that lie beyond the bound, though the layer's output does not."""
        agreed = {split(point)[0] for point, value in times.items() if split(point)[1] == "out" and value <= self.bound}
        return {point for point, value in times.items() if value > self.bound and split(point)[0] in agreed}

    def strangers(self, points: Iterable[str], ours: Mapping[str, Tensor]) -> set[str]:
        """Those of the points that are another thing in the port, whose own are here those of 32-bit arithmetic.

        There a layer's output hides nothing: a point that does not agree, in a layer whose output does, is none of its
        parts' doing.
        """
        found = set()
        for point in points:
            out = f"{split(point)[0]}out"
            truth = self._truth.get(out)
            if truth is None or out not in ours or (times := self._at(point, ours)) is None:
                continue
            exact = floor_of([], truth[self._judged]).times(distance(ours[out], truth, self._judged))
            if times > self.bound / 2 and exact <= GROSS:
                found.add(point)
        return found

    def _at(self, point: str, ours: Mapping[str, Tensor]) -> float | None:
        direct = self._times([laid_out(point, one) for one in (self._truth, ours, *self._runs)])
        if direct is None or direct <= self.bound or not point.endswith((".q", ".k")):
            return direct
        products = self._times([scores(point[:-1], one) for one in (self._truth, ours, *self._runs)])
        return direct if products is None else min(direct, products)

    def _times(self, values: list[Tensor | None]) -> float | None:
        truth, ours, *runs = values
        if truth is None or ours is None or truth.shape != ours.shape or truth.shape[:2] != self._judged.shape:
            return None
        found = [distance(run, truth, self._judged) for run in runs if run is not None]
        floor = floor_of(found, truth[self._judged]) if not self.rounded else self._rounding(found, truth)
        return floor.times(distance(ours, truth, self._judged))

    def _rounding(self, runs: Iterable[Distance], truth: Tensor) -> Floor:
        """The floor in 16 bits: what the reference's arithmetic does, and at least the rounding of the result.

        Which of its numbers comes out worst is a matter of luck, in the port as in the reference: twice that is usual.
        """
        found = [*runs, distance(truth.to(self._dtype), truth, self._judged)]
        sizes, least = truth[self._judged].double(), torch.finfo(self._dtype).eps / 8
        largest, typical = float(sizes.abs().max()), float(sizes.square().mean().sqrt())
        tiny = torch.finfo(torch.float32).tiny
        return Floor(
            2 * max(least * largest, tiny, *(run.max_abs for run in found)),
            max(least * typical, tiny, *(run.rms for run in found)),
        )
