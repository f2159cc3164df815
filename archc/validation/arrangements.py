"""The same tokens arranged otherwise: what must not change with what comes later, beside, before or in which pieces.

Every check names the inputs that it needs, and says how far the logits of any side, a port or the reference, are apart
on them. Rows are those of the left-padded batch, of which is known where a router's choice lies within the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor

from archc.architecture.model import Architecture
from archc.validation.choices import Choices
from archc.validation.parity import Deviation, Floor, ProbeResult, distance, up_to_a_tie
from archc.validation.probes import SHIFTED, Probe, length_matters, mixers, straddling

_CHANGED = 4
_TYPICAL = 64
_STEPS = 3
_Compare: TypeAlias = Callable[[Sequence[Tensor]], float]


@dataclass(frozen=True, slots=True)
class Check:
    """A property: `compare` gets the logits of all probes, and says by how many floors it is missed.

    Those of `shared` come first; other checks need them too, by the same names.
    """

    name: str
    probes: tuple[Probe, ...]
    compare: _Compare
    shared: tuple[Probe, ...] = ()
    packs: bool = False
    """Whether it is asked only of what reads restarting positions as several documents."""
    new_ground: bool = False
    """Whether a port that is right elsewhere may trip over its inputs."""


def arrangement_checks(
    architecture: Architecture, results: Sequence[ProbeResult], *, quick: bool = False
) -> Iterator[Check]:
    """What is asked of any side, given what was found on the probes; `quick`, only that its cache is of use.

    Where rotations depend on the length of the input, tokens depend on what is beside and behind them.
    """
    typical = typical_of(results)
    if quick:
        if typical is not None and not length_matters(architecture):
            yield _cache(typical, replace(typical.probe, name="in steps", chunks=_to_the_end(typical.probe.tokens)))
        return
    if typical is not None:
        yield _causality(typical)
    if length_matters(architecture):
        return
    if typical is not None:
        yield _batch(typical)
        yield from (_shifted(one, typical) for one in results if one.probe.name == SHIFTED)
    for result in results:
        if result.probe.chunks is not None:
            yield _cache(result)
        if not result.probe.real.all():
            yield from padding_checks(result)
    yield from across_windows(architecture, results)


def further_inputs(architecture: Architecture, probes: Sequence[Probe], *, quick: bool = False) -> list[Probe]:
    """What is asked beside these probes, for ports that run everything at once."""
    unjudged = [
        ProbeResult(one, Floor(1.0, 1.0), Deviation(0.0, 0.0, 0.0, 1.0), 0.0, (), Choices(), torch.zeros_like(one.real))
        for one in probes
    ]
    checks = arrangement_checks(architecture, unjudged, quick=quick)
    asked = {one.name: one for check in checks for one in (*check.shared, *check.probes)}
    known = {probe.name for probe in probes}
    return [one for name, one in asked.items() if name not in known]


def typical_of(results: Sequence[ProbeResult]) -> ProbeResult | None:
    """The probe of one row, without explicit positions, whose length is closest to what most properties show at."""
    return min(_plain(results), key=lambda one: abs(one.probe.tokens - _TYPICAL), default=None)


def _plain(results: Sequence[ProbeResult]) -> list[ProbeResult]:
    one_row = [r for r in results if r.probe.chunks is None and len(r.probe.input_ids) == 1]
    return [r for r in one_row if r.probe.position_ids is None and r.probe.tokens > _CHANGED]


def padding_checks(result: ProbeResult) -> Iterator[Check]:
    """What is asked of the rows of a padded batch, the first of which is its independence of the padding."""
    rows = [result.probe.input_ids[row, real][None] for row, real in enumerate(result.probe.real)]
    alone = tuple(Probe(f"row {row} alone", "", ids) for row, ids in enumerate(rows))
    yield Check("padding independence", (result.probe,), _left(result), alone)
    yield Check("right padding", (_padded_right(rows),), _right(result), alone)
    if len(rows) > 1:
        packed = _packed(rows[-2:])
        yield Check("packed documents", (packed,), _documents(result), alone[-2:], packs=True, new_ground=True)
    if (steps := _in_steps(result.probe)) is not None:
        yield Check("padded decoding", (steps,), _left(result), alone, new_ground=True)


def _causality(result: ProbeResult) -> Check:
    """Other tokens at the end leave the logits before them as they were."""
    ids = result.probe.input_ids.clone()
    ids[:, -_CHANGED:] = ids[:, -_CHANGED:].flip(-1) // 2
    before = result.probe.real.clone()
    before[:, -_CHANGED:] = False
    changed = replace(result.probe, name="other tokens at the end", input_ids=ids)
    return Check("causality", (changed, result.probe), lambda runs: _times(runs[0], runs[1], before, result))


def _batch(result: ProbeResult) -> Check:
    """A row of a batch gives what it gives alone, whatever the row before it is."""
    ids = result.probe.input_ids
    both = replace(result.probe, name="two rows", input_ids=torch.cat([ids.flip(-1), ids]))

    def compare(runs: Sequence[Tensor]) -> float:
        return _times(runs[0][1:], runs[1], result.probe.real, result)

    return Check("batch independence", (both, result.probe), compare)


def _shifted(result: ProbeResult, unshifted: ProbeResult) -> Check:
    """All positions moved by an offset give what they gave, up to what arithmetic does that far out."""
    length = min(result.probe.input_ids.shape[1], unshifted.probe.input_ids.shape[1])

    def compare(runs: Sequence[Tensor]) -> float:
        moved, still = runs[0][:, :length], runs[1][:, :length].expand(len(runs[0]), -1, -1)
        tied = result.tied[:, :length] | unshifted.tied[:, :length]
        return _apart(moved, still, torch.ones_like(tied), tied, result.floor)

    return Check("shift invariance", (result.probe, unshifted.probe), compare)


def _cache(result: ProbeResult, probe: Probe | None = None, name: str = "cache equivalence") -> Check:
    """One full pass gives what prefill, steps and chunks gave."""
    pieces = probe or result.probe
    whole = result.probe if probe else replace(result.probe, name="in one piece", chunks=None)
    return Check(name, (pieces, whole), lambda runs: _times(runs[0], runs[1], result.probe.real, result))


def _to_the_end(tokens: int) -> tuple[int, ...]:
    """Pieces of a prompt: a prefill, and its last tokens one by one."""
    return (tokens - _STEPS, *[1] * _STEPS)


def across_windows(architecture: Architecture, results: Sequence[ProbeResult]) -> Iterator[Check]:
    """Decoding past every window: its cache drops rows, at its edge and in pieces that reach over it."""
    for field, size in sorted({found for mixer in mixers(architecture) for found in mixer.shows_beyond}):
        crossing = [one for one in _plain(results) if one.probe.tokens >= 3 * size]
        if size > 1 and crossing:
            result = min(crossing, key=lambda one: one.probe.tokens)
            name = f"cache, {field.rpartition('.')[2].replace('_', ' ')} {size}"
            chunks = straddling(size, result.probe.tokens)
            yield _cache(result, replace(result.probe, name=name, chunks=chunks), name)


def _padded_right(rows: Sequence[Tensor]) -> Probe:
    longest = max(ids.shape[1] for ids in rows)
    mask = torch.tensor([[1] * ids.shape[1] + [0] * (longest - ids.shape[1]) for ids in rows])
    ids = torch.cat([torch.nn.functional.pad(ids, (0, longest - ids.shape[1])) for ids in rows])
    return Probe("right-padded batch", "", ids, (mask.cumsum(-1) - 1).clamp(min=0), mask)


def _packed(rows: Sequence[Tensor]) -> Probe:
    """Documents one after another, with no mask: positions that begin anew are what parts them."""
    positions = torch.cat([torch.arange(ids.shape[1]) for ids in rows])[None]
    return Probe("packed documents", "", torch.cat(list(rows), 1), positions)


def _in_steps(padded: Probe) -> Probe | None:
    """A left-padded batch through the cache: the prefill ends inside the shortest row. None if it is a single token."""
    longest = padded.input_ids.shape[1]
    rest = int(padded.real.sum(-1).min()) - 1
    if rest == 0:
        return None
    steps = (1,) * min(rest, 2) + (rest - 2,) * (rest > 2)
    return replace(padded, name="padded decoding", chunks=(longest - rest, *steps))


def _left(result: ProbeResult) -> _Compare:
    """Rows alone, then all of them at the right end of a batch."""

    def compare(runs: Sequence[Tensor]) -> float:
        *alone, padded = runs
        return max(_row(result, row, padded[row, -ids.shape[1] :], ids) for row, ids in enumerate(alone))

    return compare


def _right(result: ProbeResult) -> _Compare:
    """Rows alone, then all of them at the left end of a batch."""

    def compare(runs: Sequence[Tensor]) -> float:
        *alone, padded = runs
        return max(_row(result, row, padded[row, : ids.shape[1]], ids) for row, ids in enumerate(alone))

    return compare


def _documents(result: ProbeResult) -> _Compare:
    """The last rows alone, then one after another in a single row."""

    def compare(runs: Sequence[Tensor]) -> float:
        *alone, packed = runs
        ends = torch.tensor([0, *(ids.shape[1] for ids in alone)]).cumsum(0).tolist()
        first = len(result.probe.input_ids) - len(alone)
        parts = zip(pairwise(ends), alone, strict=True)
        return max(_row(result, first + n, packed[0, start:end], ids) for n, ((start, end), ids) in enumerate(parts))

    return compare


def _row(result: ProbeResult, row: int, found: Tensor, alone: Tensor) -> float:
    """How far the logits [tokens, vocab] of a row are from those of the row alone [1, tokens, vocab]."""
    tied = result.tied[row, result.probe.real[row]][None]
    return _apart(found[None], alone, torch.ones_like(tied), tied, result.floor)


def _times(ours: Tensor, theirs: Tensor, judged: Tensor, result: ProbeResult) -> float:
    return _apart(ours, theirs, judged, result.tied, result.floor)


def _apart(ours: Tensor, theirs: Tensor, judged: Tensor, tied: Tensor, floor: Floor) -> float:
    """How far two runs of a side are apart, in floors."""
    return floor.times(distance(ours, theirs, up_to_a_tie(ours, theirs, judged, tied, floor)))
