"""Parity without guessed tolerances: deviations, the noise floor, and a verdict for every probe.

The floor of a probe is the largest deviation that arithmetic alone produced on it: the reference
run again with every weight moved by one unit in the last place (several seeds), through fused
attention, and in fp64. Discrete choices (experts) are pinned meanwhile. A port passes a probe when it
deviates by at most BOUND floors, in the largest element and in the root mean square, from the
reference or from the reference with choices within the noise taken the other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.errors import IncompleteError
from archc.validation.choices import Choices, Flip, Noise, noise_of
from archc.validation.probes import Probe
from archc.validation.reference import Reference, Run

BOUND = 8.0
NUDGES = 3
TOGETHER = 2
"""Near ties of one token that may be taken the other way at once."""
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far logits are from the reference's.

    max_abs and rms are in logits; kl is the mean divergence of the predicted distributions from the
    reference's, in nats; top1 is the share of positions with the same likeliest token.
    """

    max_abs: float
    rms: float
    kl: float
    top1: float


@dataclass(frozen=True, slots=True)
class Floor:
    """What arithmetic alone can do on a probe, in logits."""

    max_abs: float
    rms: float

    def times(self, deviation: Deviation) -> float:
        """The deviation in floors; infinite where it is not a number."""
        if not (math.isfinite(self.max_abs) and math.isfinite(self.rms)):
            return math.inf  # a reference that is no number when nudged says nothing about a port
        ratio = max(deviation.max_abs / self.max_abs, deviation.rms / self.rms)
        return ratio if math.isfinite(ratio) else math.inf


@dataclass(frozen=True, slots=True)
class Baseline:
    """The reference's logits on a probe, the floor there, and its choices and how far noise moves their margins."""

    probe: Probe
    logits: Tensor
    floor: Floor
    choices: Choices = field(default_factory=Choices)
    noise: Noise = field(default_factory=lambda: Noise(()))


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A port on one probe.

    flips are the choices that the port took the other way within the noise; choices are those of the
    reference with these flips, which the deviation is measured from; tied [batch, tokens] says where
    one of them lies within the noise.
    """

    probe: Probe
    floor: Floor
    deviation: Deviation
    times_floor: float
    flips: tuple[Flip, ...]
    choices: Choices
    tied: Tensor
    shifted: bool = False
    """Whether all logits of a position are off by one number, which leaves probabilities as they are.

    `times_floor` is that of what remains.
    """

    @property
    def passed(self) -> bool:
        """Whether the port stays within BOUND floors."""
        return self.times_floor <= BOUND


def deviation(logits: Tensor, reference: Tensor, judged: Tensor) -> Deviation:
    """How far `logits` are from `reference` [batch, tokens, vocab] at the `judged` positions [batch, tokens]."""
    if logits.shape != reference.shape:
        return Deviation(math.inf, math.inf, math.inf, 0.0)
    ours, theirs = logits[judged], reference[judged]
    largest, squares, divergence, agreed = 0.0, 0.0, 0.0, 0
    for start in range(0, len(ours), _ROWS_AT_ONCE):
        a, b = (logits[start : start + _ROWS_AT_ONCE].double() for logits in (ours, theirs))
        difference = a - b
        largest = max(largest, _or_infinite(difference.abs().max()))
        squares += _or_infinite(difference.square().sum())
        divergence += float(F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="sum"))
        agreed += int((a.argmax(-1) == b.argmax(-1)).sum())
    count = max(len(ours), 1)
    kl = max(divergence / count, 0.0)
    return Deviation(largest, math.sqrt(squares / max(ours.numel(), 1)), kl, agreed / count)


def _or_infinite(value: Tensor) -> float:
    number = float(value)
    return math.inf if math.isnan(number) else number


@dataclass(frozen=True, slots=True)
class FloorRun:
    """One way to run the reference again.

    `times_floor` is the most that it deviated, in floors of the nudged runs, where it counts. On
    the probes `left_out` it deviates by more than BOUND, or the model refuses it: there it computes
    something else (a mask that overflows in fp64) or nothing, and does not widen the floor.
    """

    name: str
    times_floor: float
    left_out: tuple[str, ...]
    refused: bool = False
    """Whether the model does not support it at all."""


_Rerun: TypeAlias = tuple[Deviation, Choices]


def measure(
    reference: Reference, probes: list[Probe], step: Callable[[str], None]
) -> tuple[list[Baseline], list[FloorRun]]:
    """The baselines of all probes, and the runs that their floors come from; `step` is told what is about to run."""
    step("reference")
    base = [reference.run(probe) for probe in probes]

    def rerun(name: str, change: AbstractContextManager[None]) -> list[_Rerun]:
        step(name)
        with change:
            again = [reference.run(probe, one.choices) for probe, one in zip(probes, base, strict=True)]
        return [
            (deviation(run.logits, one.logits, probe.real), run.choices)
            for run, one, probe in zip(again, base, probes, strict=True)
        ]

    nudged = list(zip(*(rerun(f"floor {n + 1}/{NUDGES}", reference.nudged(n)) for n in range(NUDGES)), strict=True))
    floors = [
        floor_of([found for found, _ in runs], one.logits[probe.real])
        for runs, one, probe in zip(nudged, base, probes, strict=True)
    ]
    noises = [noise_of(one.choices, [moved for _, moved in runs]) for runs, one in zip(nudged, base, strict=True)]
    runs = [FloorRun("one unit in the last place", 1.0, ())]
    for name, other in _other_arithmetic(reference, rerun):
        if other is None:
            runs.append(FloorRun(name, 0.0, tuple(probe.name for probe in probes), refused=True))
            continue
        times = [floor.times(one) for floor, one in zip(floors, other, strict=True)]
        left_out = tuple(probe.name for probe, one in zip(probes, times, strict=True) if one > BOUND)
        runs.append(FloorRun(name, max((one for one in times if one <= BOUND), default=0.0), left_out))
        floors = [
            Floor(max(floor.max_abs, one.max_abs), max(floor.rms, one.rms)) if floor.times(one) <= BOUND else floor
            for floor, one in zip(floors, other, strict=True)
        ]
    return [
        Baseline(probe, one.logits, floor, one.choices, noise)
        for probe, one, floor, noise in zip(probes, base, floors, noises, strict=True)
    ], runs


def _other_arithmetic(
    reference: Reference, rerun: Callable[[str, AbstractContextManager[None]], list[_Rerun]]
) -> Iterator[tuple[str, list[Deviation] | None]]:
    """The runs that a model may not support: None for those that it refuses."""
    changes = (("fused attention", reference.fused_attention), (reference.wider, reference.wider_arithmetic))
    for name, change in changes:
        try:
            yield name, [found for found, _ in rerun(name, change())]
        except (IncompleteError, ValueError, ImportError):
            yield name, None


def floor_of(runs: list[Deviation], logits: Tensor) -> Floor:
    """The largest of the runs, and at least the rounding of the logits themselves.

    Rounding errors are spread evenly over half a unit: their root mean square is far below the largest (an eighth is
    on the safe side, and matters only where nudged weights move nothing).
    """
    epsilon = torch.finfo(logits.dtype).eps
    scale = float(logits.abs().max()) if logits.numel() else 1.0
    least = max(epsilon * scale, torch.finfo(torch.float32).tiny)
    return Floor(max([least, *(run.max_abs for run in runs)]), max([least / 8, *(run.rms for run in runs)]))


def judge(reference: Reference, baseline: Baseline, logits: Tensor) -> ProbeResult:
    """A port's logits on a probe against its baseline.

    Where they part at a token with a near tie, the reference runs again with that choice taken the
    other way. If it then agrees with the port at that token, the port flipped it, and is held against
    this run from there on: every position is judged, and a flip explains only what it would cause.
    """
    probe, floor, noise = baseline.probe, baseline.floor, baseline.noise
    now = Run(baseline.logits, baseline.choices)
    flips: tuple[Flip, ...] = ()
    while (place := _parting(logits, now.logits, probe.real, floor)) is not None:
        other = _explained(reference, baseline, logits, now.choices, place)
        if other is None:
            break
        now, flips = other[0], flips + other[1]
    found = deviation(logits, now.logits, probe.real)
    tied = noise.tied(now.choices, probe.input_ids)
    times, shifted = floor.times(found), False
    if times > BOUND and logits.shape == now.logits.shape:
        centred = logits - (logits - now.logits).mean(-1, keepdim=True)
        remaining = floor.times(deviation(centred, now.logits, probe.real))
        times, shifted = (remaining, True) if remaining <= BOUND else (times, False)
    return ProbeResult(probe, floor, found, times, flips, now.choices, tied, shifted)


def _explained(
    reference: Reference, baseline: Baseline, logits: Tensor, now: Choices, place: tuple[int, int]
) -> tuple[Run, tuple[Flip, ...]] | None:
    """The reference as it agrees with the port at a place, with near ties of that token taken the other way.

    They are at most TOGETHER, as few as explain it. None where they do not.
    """
    probe, (row, token) = baseline.probe, place
    tried: list[tuple[Choices, tuple[Flip, ...]]] = [(now, ())]
    for _ in range(TOGETHER):
        further = []
        for choices, before in tried:
            for flip in baseline.noise.near_ties(choices, row, token):
                if before and (flip.call, flip.group) <= (before[-1].call, before[-1].group):
                    continue  # what is pinned comes first
                other = reference.run(probe, choices, flip)
                onwards = _parting(logits[row, None], other.logits[row, None], probe.real[row, None], baseline.floor)
                if onwards is None or onwards[1] > token:
                    return other, (*before, flip)
                further.append((other.choices, (*before, flip)))
        tried = further
    return None


def _parting(logits: Tensor, reference: Tensor, judged: Tensor, floor: Floor) -> tuple[int, int] | None:
    """Row and token at which logits first leave the reference by more than BOUND floors; None if nowhere."""
    if logits.shape != reference.shape:
        return None
    if floor.times(deviation(logits, reference, judged)) <= BOUND:
        return None
    difference = torch.where(judged[..., None], logits - reference, 0).double()
    beyond = ~(difference.abs().amax(-1) <= BOUND * floor.max_abs)
    if not beyond.any():
        beyond = ~(difference.square().mean(-1).sqrt() <= BOUND * floor.rms)
    places = beyond.nonzero()
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None


def up_to_a_tie(ours: Tensor, theirs: Tensor, judged: Tensor, tied: Tensor, floor: Floor) -> Tensor:
    """The `judged` positions that come, in their row, before any parting of two runs of a port at a near tie.

    There the two may have chosen differently without anything being wrong, and what follows in the row is no
    evidence. A parting at any other token is kept.
    """
    kept = judged.clone()
    for row in range(len(judged)):
        place = _parting(ours[row, None], theirs[row, None], judged[row, None], floor)
        if place is not None and tied[row, place[1]]:
            kept[row, place[1] :] = False
    return kept
