"""Parity without guessed tolerances: deviations, the noise floor, and a verdict for every probe.

The floor of a probe is the largest deviation that arithmetic alone produced on it: the reference
run again with every weight moved by one unit in the last place (several seeds), through fused
attention, and in fp64. A port passes a probe when it deviates by at most BOUND floors, in the
largest element and in the root mean square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.validation.probes import Probe
from archc.validation.reference import Reference

BOUND = 8.0
NUDGES = 3
_ROWS_AT_ONCE = 64
# A decision is within the noise if its margin is below this many medians of how far router logits move: the largest
# move of many experts and tokens is several medians, a margin is the difference of two of them, and BOUND applies.
_TIE_MARGIN = 8 * BOUND


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
    """The reference's logits on a probe, the positions to judge, and the floor there.

    `judged` [batch, tokens] leaves out padding, and what follows a router decision that lies within
    the noise; `flips` counts the positions left out for that.
    """

    probe: Probe
    logits: Tensor
    judged: Tensor
    flips: int
    floor: Floor


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A port on one probe."""

    probe: Probe
    floor: Floor
    deviation: Deviation
    times_floor: float
    flips: int

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


def measure(
    reference: Reference, probes: list[Probe], routed: bool, step: Callable[[str], None]
) -> tuple[list[Baseline], list[FloorRun]]:
    """The baselines of all probes, and the runs that their floors come from.

    `routed` says that the model has routers; `step` is told what is about to run.
    """
    step("reference")
    logits = [reference.logits(probe) for probe in probes]
    judged = [probe.real for probe in probes]
    if routed:
        step("router margins")
        judged = [mask & _before_ties(reference, probe) for mask, probe in zip(judged, probes, strict=True)]

    def rerun(name: str, change: AbstractContextManager[None]) -> list[Deviation]:
        step(name)
        with change:
            again = [reference.logits(probe) for probe in probes]
        return [deviation(a, b, mask) for a, b, mask in zip(again, logits, judged, strict=True)]

    nudged = [rerun(f"floor {n + 1}/{NUDGES}", reference.nudged(n)) for n in range(NUDGES)]
    floors = [floor_of(runs, base[mask]) for *runs, base, mask in zip(*nudged, logits, judged, strict=True)]
    runs = [FloorRun("one unit in the last place", 1.0, ())]
    for name, other in _other_arithmetic(reference, rerun):
        if other is None:
            runs.append(FloorRun(name, 0.0, tuple(probe.name for probe in probes)))
            continue
        times = [floor.times(one) for floor, one in zip(floors, other, strict=True)]
        left_out = tuple(probe.name for probe, one in zip(probes, times, strict=True) if one > BOUND)
        runs.append(FloorRun(name, max((one for one in times if one <= BOUND), default=0.0), left_out))
        floors = [
            Floor(max(floor.max_abs, one.max_abs), max(floor.rms, one.rms)) if floor.times(one) <= BOUND else floor
            for floor, one in zip(floors, other, strict=True)
        ]
    return [
        Baseline(probe, base, mask, int((probe.real & ~mask).sum()), floor)
        for probe, base, mask, floor in zip(probes, logits, judged, floors, strict=True)
    ], runs


def _other_arithmetic(
    reference: Reference, rerun: Callable[[str, AbstractContextManager[None]], list[Deviation]]
) -> Iterator[tuple[str, list[Deviation] | None]]:
    """The runs that a model may not support: None for those that it refuses."""
    for name, change in (("fused attention", reference.fused_attention), ("fp64", reference.double_precision)):
        try:
            yield name, rerun(name, change())
        except (ValueError, RuntimeError, TypeError, ImportError):
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


def _before_ties(reference: Reference, probe: Probe) -> Tensor:
    """[batch, tokens]: true up to the first position where a router's choice lies within the noise.

    The margin between the last expert chosen and the first one passed over is compared with how
    far the router logits move when all weights move by one unit in the last place. Behind a
    flipped choice everything in the row may differ without anything being wrong.
    """
    whole = replace(probe, chunks=None)
    base = reference.routing(whole)
    with reference.nudged(NUDGES):
        moved = reference.routing(whole)
    tied = torch.zeros(probe.input_ids.numel(), dtype=torch.bool)
    top_k = reference.experts_per_token()
    for logits, other in zip(base.logits, moved.logits, strict=True):
        ranked = logits.sort(dim=-1, descending=True).values
        if top_k < ranked.shape[-1]:
            noise = (logits - other).abs().amax(-1).median()
            tied |= ranked[:, top_k - 1] - ranked[:, top_k] <= _TIE_MARGIN * noise
    return tied.view(probe.input_ids.shape).cummax(dim=1).values.logical_not()


def judge(baseline: Baseline, logits: Tensor) -> ProbeResult:
    """A port's logits on a probe against its baseline."""
    found = deviation(logits, baseline.logits, baseline.judged)
    times = baseline.floor.times(found) if baseline.judged.any() else math.inf
    return ProbeResult(baseline.probe, baseline.floor, found, times, baseline.flips)
