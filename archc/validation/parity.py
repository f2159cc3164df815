"""Parity without guessed tolerances: deviations, the noise floor, and a verdict for every probe.

The floor of a probe is the largest deviation that arithmetic alone produced on it: the reference run again with every
weight moved by one unit in the last place, its products left to another library meanwhile, and on short prompts through
fused attention and in fp64. Discrete choices (experts) are pinned meanwhile. A port passes a probe when it deviates by
at most BOUND floors, in the largest element and in the root mean square, from the reference or from the reference with
choices within the noise taken the other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
"""Runs with moved weights, of a probe that is SHORT; a longer one has enough numbers for its largest to be settled."""
SHORT = 32
"""Tokens of a probe whose floor varies with the seed."""
_PROMPT = 64
"""Tokens of the longest prompt that is run in other arithmetic."""
TOGETHER = 2
"""Near ties of one token that may be taken the other way at once."""
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Distance:
    """How far numbers are from the reference's, in the largest element and in the root mean square."""

    max_abs: float
    rms: float


@dataclass(frozen=True, slots=True)
class Deviation(Distance):
    """How far logits are from the reference's.

    max_abs and rms are in logits; kl is the mean divergence of the predicted distributions from the
    reference's, in nats; top1 is the share of positions with the same likeliest token.
    """

    kl: float
    top1: float


@dataclass(frozen=True, slots=True)
class Floor:
    """What arithmetic alone can do on a probe, in logits."""

    max_abs: float
    rms: float

    def times(self, distance: Distance) -> float:
        """The distance in floors; infinite where it is not a number."""
        if not (math.isfinite(self.max_abs) and math.isfinite(self.rms)):
            return math.inf  # a reference that is no number when nudged says nothing about a port
        ratio = max(distance.max_abs / self.max_abs, distance.rms / self.rms)
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
    by_position: tuple[float, ...] = ()
    """The largest deviation of any row at every position, in floors of max_abs; empty for logits of another shape."""

    @property
    def passed(self) -> bool:
        """Whether the port stays within BOUND floors."""
        return self.times_floor <= BOUND


def distance(logits: Tensor, reference: Tensor, judged: Tensor) -> Distance:
    """How far `logits` are from `reference` [batch, tokens, vocab] at the `judged` positions [batch, tokens]."""
    if logits.shape != reference.shape:
        return Distance(math.inf, math.inf)
    largest, squares, count = 0.0, 0.0, 0
    for ours, theirs in _few_rows(logits, reference, judged):
        difference = ours - theirs
        largest = max(largest, _or_infinite(difference.abs().max()))
        squares += _or_infinite(torch.linalg.vector_norm(difference, dtype=torch.float64)) ** 2
        count += difference.numel()
    return Distance(largest, math.sqrt(squares / max(count, 1)))


def deviation(logits: Tensor, reference: Tensor, judged: Tensor) -> Deviation:
    """The `distance`, and what it means for the predicted distributions."""
    apart = distance(logits, reference, judged)
    if logits.shape != reference.shape:
        return Deviation(apart.max_abs, apart.rms, math.inf, 0.0)
    divergence, agreed, count = 0.0, 0, 0
    for ours, theirs in _few_rows(logits, reference, judged):
        a, b = ours.double().log_softmax(-1), theirs.double().log_softmax(-1)
        divergence += float(F.kl_div(a, b, log_target=True, reduction="sum"))
        agreed += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        count += len(ours)
    return Deviation(apart.max_abs, apart.rms, max(divergence / max(count, 1), 0.0), agreed / max(count, 1))


def _few_rows(logits: Tensor, reference: Tensor, judged: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The judged positions of both sides, [n, vocab], a few at a time, in no less than 32 bits."""
    every = judged.nonzero()
    for start in range(0, len(every), _ROWS_AT_ONCE):
        places = every[start : start + _ROWS_AT_ONCE]
        ours, theirs = (side[tuple(places.T)] for side in (logits, reference))
        wide = torch.promote_types(torch.promote_types(ours.dtype, theirs.dtype), torch.float32)
        yield ours.to(wide), theirs.to(wide)


def _or_infinite(value: Tensor) -> float:
    number = float(value)
    return math.inf if math.isnan(number) else number


@dataclass(frozen=True, slots=True)
class FloorRun:
    """One way to run the reference again.

    `times_floor` is the most that it deviated, in floors of the nudged runs, where it counts. On
    the probes `left_out` it deviates by more than BOUND, or the model refuses it: there it computes
    something else (a fused kernel that knows no soft cap) or nothing, and does not widen the floor. `on` are
    the probes that it was tried on.
    """

    name: str
    times_floor: float
    left_out: tuple[str, ...]
    refused: bool = False
    """Whether the model does not support it at all."""
    on: tuple[str, ...] = ()


_Rerun: TypeAlias = tuple[Distance, Choices]


def measure(
    reference: Reference, probes: list[Probe], step: Callable[[str], None], *, quick: bool = False
) -> tuple[list[Baseline], list[FloorRun]]:
    """The baselines of all probes, and the runs that their floors come from; `step` is told what is about to run.

    A `quick` floor is that of moved weights alone, and of a single run where no experts may tie.
    """
    step("reference")
    base = {probe.name: reference.run(probe) for probe in probes}

    def rerun(name: str, change: AbstractContextManager[None], some: Sequence[Probe]) -> dict[str, _Rerun]:
        step(name)
        found = {}
        with change:
            for probe in some:
                run = reference.run(probe, base[probe.name].choices)
                found[probe.name] = distance(run.logits, base[probe.name].logits, probe.real), run.choices
        return found

    nudged: dict[str, list[_Rerun]] = {probe.name: [] for probe in probes}
    for n in range(NUDGES):
        due = [probe for probe in probes if n < nudges_of(probe, base[probe.name].choices, quick=quick)]
        if due:
            for name, found in rerun(f"floor {n + 1}/{NUDGES}", reference.nudged(n), due).items():
                nudged[name].append(found)
    floors = {
        probe.name: floor_of([found for found, _ in nudged[probe.name]], base[probe.name].logits[probe.real])
        for probe in probes
    }
    runs = [FloorRun("one unit in the last place", 1.0, (), on=tuple(probe.name for probe in probes))]
    prompts = [] if quick else [probe for probe in probes if is_prompt(probe)]
    for name, change in _other_arithmetic(reference) if prompts else ():
        on = tuple(probe.name for probe in prompts)
        try:
            other = {probe: found for probe, (found, _) in rerun(name, change(), prompts).items()}
        except (IncompleteError, ValueError, ImportError):
            runs.append(FloorRun(name, 0.0, on, refused=True, on=on))
            continue
        times = {probe: floors[probe].times(found) for probe, found in other.items()}
        counted = {probe: one for probe, one in times.items() if one <= BOUND}
        left_out = tuple(probe for probe in on if probe not in counted)
        runs.append(FloorRun(name, max(counted.values(), default=0.0), left_out, on=on))
        for probe in counted:
            floor, apart = floors[probe], other[probe]
            floors[probe] = Floor(max(floor.max_abs, apart.max_abs), max(floor.rms, apart.rms))
    return [
        Baseline(
            probe,
            base[probe.name].logits,
            floors[probe.name],
            base[probe.name].choices,
            noise_of(base[probe.name].choices, [moved for _, moved in nudged[probe.name]]),
        )
        for probe in probes
    ], runs


def nudges_of(probe: Probe, choices: Choices, *, quick: bool = False) -> int:
    """How many runs with moved weights the floor of a probe takes: several where it is short, or experts may tie."""
    return NUDGES if choices.calls or (probe.tokens <= SHORT and not quick) else 1


def is_prompt(probe: Probe) -> bool:
    """Whether it is one row of few tokens at positions from 0 on, run in one piece."""
    one_row = len(probe.input_ids) == 1 and probe.chunks is None
    return one_row and probe.position_ids is None and probe.tokens <= _PROMPT


def _other_arithmetic(reference: Reference) -> Iterator[tuple[str, Callable[[], AbstractContextManager[None]]]]:
    """The runs that a model may not support."""
    yield "fused attention", reference.fused_attention
    yield reference.wider, reference.wider_arithmetic


def floor_of(runs: Sequence[Distance], logits: Tensor) -> Floor:
    """The largest of the runs, and at least the rounding of the logits themselves.

    Rounding errors are spread evenly over half a unit: their root mean square is far below the largest (an eighth is
    on the safe side, and matters only where nudged weights move nothing).
    """
    epsilon = torch.finfo(logits.dtype).eps
    scale = max(abs(float(end)) for end in logits.aminmax()) if logits.numel() else 1.0
    least = max(epsilon * scale, torch.finfo(torch.float32).tiny)
    return Floor(max([least, *(run.max_abs for run in runs)]), max([least / 8, *(run.rms for run in runs)]))


def judge(reference: Reference, baseline: Baseline, logits: Tensor) -> ProbeResult:
    """A port's logits on a probe against its baseline, and what its deviation means."""
    probe = baseline.probe
    now, flips = _followed(reference, baseline, logits)
    times, shifted = _times(baseline, logits, now)
    tied = baseline.noise.tied(now.choices, probe.input_ids)
    found = deviation(logits, now.logits, probe.real)
    positions = _by_position(_centred(logits, now.logits) if shifted else logits, now.logits, probe.real)
    relative = tuple(apart / baseline.floor.max_abs for apart in positions)
    return ProbeResult(probe, baseline.floor, found, times, flips, now.choices, tied, shifted, relative)


def times_floor(reference: Reference, baseline: Baseline, logits: Tensor) -> float:
    """By how many floors a port leaves its baseline, as `judge` says."""
    return _times(baseline, logits, _followed(reference, baseline, logits)[0])[0]


def _followed(reference: Reference, baseline: Baseline, logits: Tensor) -> tuple[Run, tuple[Flip, ...]]:
    """The reference as a port must be held against it, and the near ties that it takes the other way for that.

    Where they part at a token with a near tie, the reference runs again with that choice taken the
    other way. If it then agrees with the port at that token, the port flipped it, and is held against
    this run from there on: every position is judged, and a flip explains only what it would cause.
    """
    now = Run(baseline.logits, baseline.choices)
    flips: tuple[Flip, ...] = ()
    while now.choices.calls and (place := _parting(logits, now.logits, baseline.probe.real, baseline.floor)):
        other = _explained(reference, baseline, logits, now.choices, place)
        if other is None:
            break
        now, flips = other[0], flips + other[1]
    return now, flips


def _times(baseline: Baseline, logits: Tensor, now: Run) -> tuple[float, bool]:
    """Floors between a port and a run, and whether that is without one number that all logits of a position are off."""
    real, floor = baseline.probe.real, baseline.floor
    times = floor.times(distance(logits, now.logits, real))
    if times > BOUND and logits.shape == now.logits.shape:
        remaining = floor.times(distance(_centred(logits, now.logits), now.logits, real))
        if remaining <= BOUND:
            return remaining, True
    return times, False


def _centred(logits: Tensor, reference: Tensor) -> Tensor:
    """Logits without the one number by which all of a position are off."""
    return logits - (logits - reference).mean(-1, keepdim=True)


def _by_position(logits: Tensor, reference: Tensor, judged: Tensor) -> list[float]:
    """The largest difference at every position in a row that is `judged` there [batch, tokens]; infinite for NaN."""
    if logits.shape != reference.shape:
        return []
    found: list[float] = []
    for start in range(0, judged.shape[1], _ROWS_AT_ONCE):
        here = slice(start, start + _ROWS_AT_ONCE)
        apart = (logits[:, here].float() - reference[:, here].float()).abs().amax(-1)
        found += [_or_infinite(one) for one in torch.where(judged[:, here], apart, 0).amax(0)]
    return found


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
    if floor.times(distance(logits, reference, judged)) <= BOUND:
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
