"""Evidence: what a port gave on the probes, in the order in which a wrong model shows, and whether another agrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from archc.validation.parity import BOUND, NUDGES, Baseline, Floor, distance, floor_of
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.reference import Reference, nudge
from archc.validation.tracing import layer_of, split
from archc.validation.views import by_token

_TRACED = 64
_COMPARABLE = ("embed", "out", "final_norm", "logits")
"""Points that mean the same in every class. Inside of layers, some add, scale or turn a step earlier than others."""
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
        return (floor or self.floor).times(distance(other, self.ours, self.judged))

    def differs(self, one: Tensor, other: Tensor) -> bool:
        """Whether two models give different things here, by more than noise."""
        return self.floor.times(distance(one, other, self.judged)) > BOUND

    def nearness(self, other: Tensor) -> float:
        """The root mean square distance of another model from the port, relative to that of the right one."""
        mine = distance(other, self.ours, self.judged).rms
        right = distance(self.right, self.ours, self.judged).rms
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


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that part: its logits by probe, and its points on a probe."""

    logits: Mapping[str, Tensor]
    points: Callable[[Probe], Mapping[str, Tensor] | None]


class Case:
    """All evidence of one side against a right one, on the probes whose logits are known."""

    def __init__(self, reference: Reference, baselines: Sequence[Baseline], ours: Side, right: Side) -> None:
        known = [one for one in baselines if one.probe.name in ours.logits and one.probe.name in right.logits]
        ordered = sorted(known, key=lambda one: (one.probe.chunks is not None, one.probe.input_ids.numel()))
        logits = [_of_logits(one, ours.logits[one.probe.name], right.logits[one.probe.name]) for one in ordered]
        plain = [one for one in ordered if _is_plain(one.probe)]
        self.evidence = [_first_token(one) for one in logits if _is_plain(one.probe)][:1]
        self.path: list[Evidence] = []
        """All points of one probe in the order of computation, each on the first token alone before all of them; then
        the logits of all probes.

        What is wrong within a layer shows there, but some of it is not the same in every class: a guide, no proof.
        """
        if plain:
            traced = min(plain, key=lambda one: abs(one.probe.tokens - _TRACED))
            points = _traced(reference, traced, ours, right)
            self.evidence += [one for one in points if same_in_every_class(one)]
            self.path = [each for one in points for each in (_first_token(one), one)] + logits
        self.evidence += logits
        self.wrong = [one for one in self.evidence if not one.agrees(one.right)]
        """What the right side does not explain."""
        self.right = [one for one in self.evidence if one not in self.wrong]


class Answers:
    """What a model gives on the probes; every probe is run only when it is asked for.

    The first that is asked of it is most often all: it is run to the end of that layer, and whole for a later one.
    """

    def __init__(self, port: GeneratedPort) -> None:
        self._port = port
        self._logits: dict[str, Tensor] = {}
        self._points: dict[str, Mapping[str, Tensor]] = {}
        self._reached: dict[str, float] = {}
        """The last layer that a probe was run through."""

    def at(self, evidence: Evidence) -> Tensor | None:
        """The tensor at the place of some evidence; None where this model has no such point, or none of that shape."""
        name = evidence.probe.name
        if evidence.point == "logits":
            if name not in self._logits:
                self._logits[name] = self._port.logits(evidence.probe)
            return self._logits[name]
        layer = _known_behind(evidence.point)
        if layer > self._reached.get(name, -1):
            early = name not in self._reached and layer < math.inf
            port, probe = self._port, evidence.probe
            self._points[name] = by_token(port.points_until(probe, int(layer)) if early else port.points(probe))
            self._reached[name] = layer if early else math.inf
        found = self._points[name].get(evidence.point)
        return found if found is not None and found.shape == evidence.ours.shape else None

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
            moved.append(distance(again, found, evidence.judged))
        own = floor_of(moved, found[evidence.judged])
        return Floor(max(own.max_abs, evidence.floor.max_abs), max(own.rms, evidence.floor.rms))


def _known_behind(point: str) -> float:
    """The layer at whose end a point is known; beyond all of them for what comes last."""
    if (layer := layer_of(point)) is not None:
        return layer
    return 0 if point == "embed" else math.inf


def same_in_every_class(evidence: Evidence) -> bool:
    """Whether a point is one that means the same in every class."""
    return split(evidence.point)[1] in _COMPARABLE


def _is_plain(probe: Probe) -> bool:
    return probe.chunks is None and len(probe.input_ids) == 1 and probe.position_ids is None


def _of_logits(baseline: Baseline, ours: Tensor, right: Tensor) -> Evidence:
    probe = baseline.probe
    return Evidence(probe, "logits", ours, right, baseline.floor, probe.real, bool(baseline.choices.calls))


def _first_token(whole: Evidence) -> Evidence:
    """The first token alone: a softmax over one key is one, whatever positions, scales, windows and masks are."""
    judged = torch.zeros_like(whole.judged)
    judged[:, 0] = True
    return replace(whole, judged=judged)


def _traced(reference: Reference, baseline: Baseline, ours: Side, right: Side) -> list[Evidence]:
    """What both show between their ends, in the order of computation."""
    probe, judged = baseline.probe, baseline.probe.real
    mine, theirs = by_token(ours.points(probe) or {}), by_token(right.points(probe) or {})
    if not mine or not theirs:
        return []
    expected = by_token(reference.points(probe, baseline.choices))
    with reference.nudged(NUDGES):
        moved = by_token(reference.points(probe, baseline.choices))
    found = []
    for point, tensor in expected.items():
        shapes = {tensor.shape, *(side[point].shape for side in (mine, theirs) if point in side)}
        if point == "logits" or point not in mine or point not in theirs or len(shapes) > 1:
            continue
        if tensor.shape[:2] == judged.shape:
            floor = floor_of([distance(moved[point], tensor, judged)], tensor[judged])
            routed = bool(baseline.choices.calls)
            found.append(Evidence(probe, point, mine[point], theirs[point], floor, judged, routed))
    return found
