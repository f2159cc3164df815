"""Evidence: what a port gave on the probes, in the order in which a wrong model shows, and whether another agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from archc.validation.parity import BOUND, NUDGES, Baseline, Floor, deviation, floor_of
from archc.validation.ports import GeneratedPort, Port
from archc.validation.probes import Probe
from archc.validation.reference import Reference, nudge

_MOST_TIED = 0.1
"""The share of wrong positions that routers may explain, where choices near a tie send tokens elsewhere."""
_CLOSE = 0.05
"""A model that is this much closer to the port than the right one is judged by its own noise floor."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A tensor [batch, tokens, …] that a port gave at a point of a probe, the right one, and the floor there.

    `judged` [batch, tokens] are the positions that count; `routed` says whether discrete choices lie behind it.
    """

    probe: Probe
    point: str
    ours: Tensor
    right: Tensor
    floor: Floor
    judged: Tensor
    routed: bool

    def times(self, other: Tensor, floor: Floor | None = None) -> float:
        """How far another model is from the port, in floors."""
        return (floor or self.floor).times(deviation(other, self.ours, self.judged))

    def nearness(self, other: Tensor) -> float:
        """The root mean square distance of another model from the port, relative to that of the right one."""
        mine = deviation(other, self.ours, self.judged).rms
        right = deviation(self.right, self.ours, self.judged).rms
        return mine / right if right > 0 else (0.0 if mine == 0 else float("inf"))

    def agrees(self, other: Tensor, floor: Floor | None = None) -> bool:
        """Whether another model gives what the port gave."""
        floor = floor or self.floor
        if self.times(other, floor) <= BOUND:
            return True
        if not self.routed or other.shape != self.ours.shape:
            return False
        off, was_off = _beyond(other, self.ours, floor), _beyond(self.right, self.ours, self.floor)
        off, was_off = off & self.judged, was_off & self.judged
        return bool(was_off.any()) and int(off.sum()) <= _MOST_TIED * int(was_off.sum())


def _beyond(a: Tensor, b: Tensor, floor: Floor) -> Tensor:
    """Positions [batch, tokens] at which two tensors are further apart than noise."""
    difference = (a - b).flatten(2).abs().amax(-1)
    return ~(difference <= BOUND * floor.max_abs)


class Case:
    """All evidence against a port, ordered so that what early mistakes leave untouched comes last."""

    def __init__(
        self, reference: Reference, port: Port, baselines: Sequence[Baseline], logits: Mapping[str, Tensor]
    ) -> None:
        ordered = sorted(baselines, key=lambda one: (one.probe.chunks is not None, one.probe.input_ids.numel()))
        self.evidence: list[Evidence] = []
        whole = [one for one in ordered if _is_plain(one.probe)]
        if whole:
            self.evidence += _first_token(whole[0], logits)
            traced = min(whole, key=lambda one: abs(one.probe.tokens - 64))
            self.evidence += _traced(reference, port, traced)
        self.evidence += [_of_logits(one, logits[one.probe.name]) for one in ordered if one.probe.name in logits]

        self.wrong = [one for one in self.evidence if not one.agrees(one.right)]
        """What the right model does not explain."""
        self.right = [one for one in self.evidence if one not in self.wrong]


class Answers:
    """What a model gives on the probes; every probe is run once, and only when it is asked for."""

    def __init__(self, port: GeneratedPort) -> None:
        self._port = port
        self._logits: dict[str, Tensor] = {}
        self._points: dict[str, Mapping[str, Tensor]] = {}

    def at(self, evidence: Evidence) -> Tensor | None:
        """The tensor at the place of some evidence; None where this model has no such point."""
        name = evidence.probe.name
        if evidence.point == "logits":
            if name not in self._logits:
                self._logits[name] = self._port.logits(evidence.probe)
            return self._logits[name]
        if name not in self._points:
            self._points[name] = self._port.points(evidence.probe)
        return self._points[name].get(evidence.point)

    def agree(self, evidence: Evidence) -> bool:
        """Whether the model gives what the port gave; where it comes close, by its own floor if that is higher."""
        found = self.at(evidence)
        if found is None or evidence.agrees(found):
            return True
        if evidence.nearness(found) > _CLOSE:
            return False
        return evidence.agrees(found, self._floor(evidence, found))

    def _floor(self, evidence: Evidence, found: Tensor) -> Floor:
        moved = []
        for seed in range(NUDGES):
            tensors = list(self._port.model.state_dict().values())
            nudge(tensors, seed, 1)
            try:
                again = Answers(self._port).at(evidence)
            finally:
                nudge(tensors, seed, -1)
            assert again is not None
            moved.append(deviation(again, found, evidence.judged))
        own = floor_of(moved, found[evidence.judged])
        return Floor(max(own.max_abs, evidence.floor.max_abs), max(own.rms, evidence.floor.rms))


def _is_plain(probe: Probe) -> bool:
    return probe.chunks is None and len(probe.input_ids) == 1 and probe.position_ids is None


def _of_logits(baseline: Baseline, ours: Tensor) -> Evidence:
    probe = baseline.probe
    routed = bool(baseline.choices.calls)
    return Evidence(probe, "logits", ours, baseline.logits, baseline.floor, probe.real, routed)


def _first_token(baseline: Baseline, logits: Mapping[str, Tensor]) -> list[Evidence]:
    """The first token alone: a softmax over one key is one, whatever positions, scales, windows and masks are."""
    if baseline.probe.name not in logits:
        return []
    judged = torch.zeros_like(baseline.probe.real)
    judged[:, 0] = True
    whole = _of_logits(baseline, logits[baseline.probe.name])
    return [Evidence(whole.probe, "logits", whole.ours, whole.right, whole.floor, judged, whole.routed)]


def _traced(reference: Reference, port: Port, baseline: Baseline) -> list[Evidence]:
    """The port's points between its ends, in the order of computation."""
    ours = port.points(baseline.probe)
    if not ours:
        return []
    right = reference.points(baseline.probe, baseline.choices)
    with reference.nudged(NUDGES):
        moved = reference.points(baseline.probe, baseline.choices)
    judged = baseline.probe.real
    found = []
    for point, expected in right.items():
        if point == "logits" or point not in ours or ours[point].shape != expected.shape:
            continue
        if expected.shape[:2] != judged.shape:
            continue
        floor = floor_of([deviation(moved[point], expected, judged)], expected[judged])
        found.append(
            Evidence(baseline.probe, point, ours[point], expected, floor, judged, bool(baseline.choices.calls))
        )
    return found
