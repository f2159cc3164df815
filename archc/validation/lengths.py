"""The lengths you serve: the loss at every position of a text, of the reference and of a port.

A position is that of a token whose successor is predicted, so p tokens stand before it, and a window of W loses its
first token at position W. Both sides decode through their caches in chunks, so no length needs the square of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from archc.architecture.model import Architecture
from archc.errors import IncompleteError, UsageError
from archc.validation.losses import CHUNK, Sides
from archc.validation.marks import Mark, edges_of, marks_of
from archc.validation.parity import BOUND, NUDGES, Deviation, Floor, floor_of
from archc.validation.ports import GeneratedPort, Port
from archc.validation.reference import Reference
from archc.validation.text import Tokens, read_text

PASSAGES = 16
ROOM = 8192
"""Tokens that are read in all, unless one passage is longer."""
LONGEST = 4096
"""Tokens of a passage where nobody says how many."""
TIE_UNITS = 64
"""Units in the last place by which weights move where a model chooses, so that near ties fall the other way."""
CHANCE = 3.0
"""Standard errors that a rise past the trained length must exceed."""

Step = Callable[[str, float], None]
"""Is told what is running, and which share of all work is done."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Mean losses in nats over the positions from `start` up to `end` (not included) of every passage.

    `within` is the reference's on the same tokens, read with no more before them than the trained length has room for;
    None up to that length. Deviation and floor are of single losses: the port's from the reference's, and the
    reference's own under noise.
    """

    start: int
    end: int
    tokens: int
    reference: float
    within: float | None
    port: float
    floor: Floor
    deviation: Deviation

    @property
    def times_floor(self) -> float:
        """The deviation in floors."""
        return self.floor.times(self.deviation)

    @property
    def passed(self) -> bool:
        """Whether the port keeps to the reference."""
        return self.times_floor <= BOUND


@dataclass(frozen=True, slots=True)
class Rise:
    """The reference's mean loss beyond the trained length, and that of the same tokens read within it.

    `error` is the standard error of the mean difference, were all tokens independent.
    """

    position: int
    beyond: float
    within: float
    error: float

    @property
    def beyond_chance(self) -> bool:
        """Whether the loss rises by more than chance."""
        return self.beyond - self.within > CHANCE * self.error


@dataclass
class LengthsResult:
    """Losses by position. `departure` is the first position at which the port leaves the reference."""

    spec_name: str
    reference_version: str
    port_kind: str
    port_name: str
    text: Tokens
    passages: int
    length: int
    chunks: dict[str, int | None]
    """Tokens at a time, of `reference` and `port`; None for one full pass."""
    marks: list[Mark]
    buckets: list[Bucket]
    departure: int | None
    rise: Rise | None
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the port keeps to the reference at every length."""
        return self.departure is None

    @property
    def departure_mark(self) -> Mark | None:
        """What begins where the port leaves the reference, give or take a position."""
        near = [mark for mark in self.marks if self.departure is not None and abs(mark.position - self.departure) <= 1]
        return min(near, key=lambda mark: abs(mark.position - (self.departure or 0)), default=None)


def run_lengths(
    architecture: Architecture,
    folder: Path,
    text: Path,
    step: Step,
    *,
    longest: int | None = None,
    open_port: Callable[[Architecture, Path], Port] = GeneratedPort,
) -> LengthsResult:
    """The losses of reference and port on passages of `longest` tokens of a text.

    Without `longest`, passages are as long as the text, up to twice the context and LONGEST. Raises UsageError where
    there are not so many positions, and IncompleteError where the text is shorter, or no loss can be had.
    """
    started = time.perf_counter()
    tokens = read_text(architecture, folder, text)
    if tokens is None:
        raise IncompleteError(f"{folder} has no tokenizer.json to read a text with", "add the checkpoint's tokenizer")
    _require_places(longest, architecture.embedding.positions, "its table of positions")
    step("load the reference", 0.0)
    reference = Reference(folder)
    length, ids = _passages(architecture, reference, tokens, longest, text)
    step("load the port", 0.0)
    port = open_port(architecture, folder)
    sides = Sides(architecture, reference, port)
    moved = max(len(ids), NUDGES)
    trained = architecture.trained_context or architecture.context
    work = _Work(step, (2 * len(ids) + moved) * length + 2 * len(ids) * max(length - trained, 0))
    loaded = time.perf_counter()

    theirs = torch.stack([sides.reference_losses(one, work.named("reference")) for one in ids])
    within = [sides.losses_within(trained, one, tokens.opening, work.named("trained length")) for one in ids]
    noise = []
    for seed in range(moved):  # every passage at least once, each time with other weights
        passage = seed % len(ids)
        with reference.nudged(seed, TIE_UNITS if sides.chooses else 1):
            again = sides.reference_losses(ids[passage], work.named(f"floor {seed + 1}/{moved}"))
        noise.append((again, theirs[passage]))
    referenced = time.perf_counter()
    ours = torch.stack([sides.port_losses(one, work.named("port")) for one in ids])

    marks = marks_of(architecture, length)
    edges = edges_of(length, [mark.position for mark in marks])
    floors = _floors(noise, edges)
    held, notes = _held_against(sides, ids, ours, theirs, edges, floors)
    buckets = _buckets(ours, held, edges, floors, torch.stack(within))
    return LengthsResult(
        spec_name=architecture.name,
        reference_version=reference.version,
        port_kind=port.kind,
        port_name=port.name,
        text=tokens,
        passages=len(ids),
        length=length,
        chunks={
            "reference": min(CHUNK, length) if sides.reference_steps else None,
            "port": min(CHUNK, length) if sides.port_steps else None,
        },
        marks=marks,
        buckets=buckets,
        departure=_departure(ours, held, buckets),
        rise=_rise(theirs, torch.stack(within), trained),
        notes=[*sides.notes, *notes],
        seconds={
            "load": loaded - started,
            "reference": referenced - loaded,
            "port": time.perf_counter() - referenced,
            "total": time.perf_counter() - started,
        },
    )


def _passages(
    architecture: Architecture, reference: Reference, tokens: Tokens, longest: int | None, text: Path
) -> tuple[int, list[tuple[int, ...]]]:
    """How many positions are tried, and the passages: so many tokens, and one that only has to be predicted."""
    there = len(tokens.ids) - 1
    wanted = longest or min(there, 2 * architecture.context, LONGEST, architecture.embedding.positions or LONGEST)
    if wanted > architecture.context:
        wall = reference.wall(architecture.context, wanted)
        _require_places(longest, wall, "transformers' class")
        wanted = min(wanted, wall or wanted)
    if there < max(wanted, 1):
        raise IncompleteError(
            f"{text} is too short: {len(tokens.ids):,} tokens, and {max(wanted, 1):,} positions and a token to predict "
            f"take {max(wanted, 1) + 1:,}",
            "name a longer text or a smaller --max",
        )
    return wanted, tokens.passages(wanted + 1, max(1, min(PASSAGES, ROOM // wanted)))


def _require_places(longest: int | None, places: int | None, whose: str) -> None:
    if longest is not None and places is not None and longest > places:
        raise UsageError(
            f"--max {longest} is beyond {whose}, which ends after {places} positions", f"ask for --max {places}"
        )


class _Work:
    """Counts the tokens that have gone through a model."""

    def __init__(self, step: Step, total: int) -> None:
        self._step, self._total, self._done = step, total, 0

    def named(self, name: str) -> Callable[[int], None]:
        """What is told of tokens done under this name."""

        def advance(tokens: int) -> None:
            self._done += tokens
            self._step(name, min(self._done / self._total, 1.0))

        return advance


def _held_against(
    sides: Sides, ids: list[tuple[int, ...]], ours: Tensor, theirs: Tensor, edges: list[int], floors: list[Floor]
) -> tuple[Tensor, list[str]]:
    """The losses that the port is held against, and a word where they are not those of the same steps.

    Some classes compute something else in steps than in a full pass. A port that leaves the steps is right if it
    keeps to the full pass, which is tried up to LONGEST tokens.
    """
    fails = not all(bucket.passed for bucket in _buckets(ours, theirs, edges, floors))
    if fails and sides.reference_steps and len(ids[0]) <= LONGEST:
        whole = torch.stack([sides.whole_losses(one) for one in ids])
        if all(bucket.passed for bucket in _buckets(ours, whole, edges, floors)):
            return whole, ["the reference's steps part from its own full pass; the port is held against the latter"]
    return theirs, []


def _deviation(ours: Tensor, theirs: Tensor) -> Deviation:
    """How far losses are from the reference's: the largest, and the root mean square."""
    difference = (ours - theirs).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    return Deviation(float(difference.max()), float(difference.square().mean().sqrt()), 0.0, 0.0)


def _floors(noise: Sequence[tuple[Tensor, Tensor]], edges: list[int]) -> list[Floor]:
    """The floor of every bucket, from losses with moved weights and without.

    It is no smaller than that of shorter lengths, of which there may be more tokens.
    """
    floors: list[Floor] = []
    for start, end in pairwise(edges):
        part = slice(start, end)
        losses = torch.cat([still[part] for _, still in noise])
        own = floor_of([_deviation(again[part], still[part]) for again, still in noise], losses.float())
        last = floors[-1] if floors else own
        floors.append(Floor(max(own.max_abs, last.max_abs), max(own.rms, last.rms)))
    return floors


def _buckets(
    ours: Tensor, theirs: Tensor, edges: list[int], floors: list[Floor], within: Tensor | None = None
) -> list[Bucket]:
    return [
        Bucket(
            start=start,
            end=end,
            tokens=(end - start) * len(theirs),
            reference=float(theirs[:, start:end].mean()),
            within=None
            if within is None or bool(within[:, start].isnan().any())
            else float(within[:, start:end].mean()),
            port=float(ours[:, start:end].mean()),
            floor=floor,
            deviation=_deviation(ours[:, start:end], theirs[:, start:end]),
        )
        for (start, end), floor in zip(pairwise(edges), floors, strict=True)
    ]


def _departure(ours: Tensor, theirs: Tensor, buckets: list[Bucket]) -> int | None:
    """The first position whose loss leaves the reference's; where only many small ones do, that of their bucket."""
    for bucket in buckets:
        if not bucket.passed:
            part = slice(bucket.start, bucket.end)
            difference = (ours[:, part] - theirs[:, part]).abs().amax(0)
            beyond = (~(difference <= BOUND * bucket.floor.max_abs)).nonzero()
            return bucket.start + int(beyond[0]) if len(beyond) else bucket.start
    return None


def _rise(losses: Tensor, within: Tensor, trained: int) -> Rise | None:
    """What happens to the reference past the trained length; None where the passages end before."""
    beyond, fresh = losses[:, trained:].flatten(), within[:, trained:].flatten()
    if len(beyond) < 2 or bool(fresh.isnan().any()):
        return None
    error = float((beyond - fresh).std()) / math.sqrt(len(beyond))
    return Rise(trained, float(beyond.mean()), float(fresh.mean()), error)
