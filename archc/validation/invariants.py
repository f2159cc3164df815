"""Invariants: what must hold of a port whatever its reference says, and of a spec whatever its port does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import torch
from torch import Tensor

from archc.analysis.cache import cache_sizes
from archc.architecture.model import Architecture
from archc.parts.base import MixerPart
from archc.validation.parity import BOUND, Floor, ProbeResult, deviation, up_to_a_tie
from archc.validation.ports import Port
from archc.validation.probes import Blind, Probe, mixers
from archc.validation.reference import Reference

_CHANGED = 4
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property, whether it holds, and the figure that says so: `unit` says of what, `detail` what was expected."""

    name: str
    passed: bool
    figure: float
    unit: Literal["times the floor", "cached numbers", "layers with another window than the reference"]
    detail: str


class _Side(Protocol):
    """A port, or the reference."""

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe."""


_Check: TypeAlias = Callable[[_Side, ProbeResult, Tensor], Invariant]


def check_invariants(
    architecture: Architecture,
    reference: Reference,
    port: Port,
    results: list[ProbeResult],
    logits: Mapping[str, Tensor],
    wall: int | None,
) -> tuple[list[Invariant], list[Blind]]:
    """Cache size and causality; where rotations do not depend on the length of the input, also cache and padding.

    `logits` are the port's own, by the probe's name; `wall` is how many positions there are, if that is limited. What
    the reference itself does not keep is not asked of a port, and said to be unseen. A cache that is no list of keys
    and values by layer is not looked into.
    """
    found, blind = _against_own_cache(architecture, reference, wall), []
    for check, result in _checks(architecture, results):
        own = logits[result.probe.name]
        invariant = check(port, result, own)
        if not invariant.passed:
            theirs = check(reference, result, reference.logits(result.probe))
            if not theirs.passed:
                blind.append(
                    Blind(invariant.name, f"the reference itself is {theirs.figure:,.0f} floors from keeping it")
                )
                continue
        found.append(invariant)
    return found, blind


def alone_in_padding(reference: Reference, port: Port, result: ProbeResult, own: Tensor) -> bool:
    """Whether a port gives in a padded batch what it gives for each row alone, and the reference does not."""
    return _padding(port, result, own).passed and not _padding(reference, result, reference.logits(result.probe)).passed


def _checks(architecture: Architecture, results: list[ProbeResult]) -> Iterator[tuple[_Check, ProbeResult]]:
    """What is asked, and on which probe."""
    one_row = [r for r in results if r.probe.chunks is None and len(r.probe.input_ids) == 1]
    plain = [r for r in one_row if r.probe.position_ids is None and r.probe.tokens > _CHANGED]
    if plain:
        yield _causality, min(plain, key=lambda one: abs(one.probe.tokens - 64))
    if length_matters(architecture):
        return
    for result in results:
        if result.probe.chunks is not None:
            yield _cache, result
        if len(result.probe.input_ids) > 1:
            yield _padding, result


def length_matters(architecture: Architecture) -> bool:
    """Whether rotations depend on the length of the input."""
    return any(mixer.rope is not None and mixer.rope.length_matters for mixer in mixers(architecture))


def _against_own_cache(architecture: Architecture, reference: Reference, wall: int | None) -> list[Invariant]:
    """Transformers' own cache holds as many numbers as the spec says, and has the windows that it says.

    A window longer than every probe shows nowhere else.
    """
    tokens = min(_CACHED, wall or _CACHED)
    held = reference.cached(tokens)
    if held is None or len(held.windows) != len(architecture.layers):
        return []
    declared = [_kept_window(mixer) for mixer in mixers(architecture)]
    other = [
        f"layer {layer}: {_window(ours)} declared, {_window(theirs)} in the reference"
        for layer, (ours, theirs) in enumerate(zip(declared, held.windows, strict=True))
        if ours != theirs
    ]
    windows = Invariant(
        "windows", not other, len(other), "layers with another window than the reference", other[0] if other else ""
    )
    sizes = cache_sizes(architecture, context=tokens, batch=1, dtype="float32", state_dtype="float32")
    size = sizes["reference_elements_at_context"]
    detail = f"{size:,} declared, {held.elements:,} in the reference, after {tokens} tokens"
    return [Invariant("cache size", size == held.elements, held.elements, "cached numbers", detail), windows]


def _kept_window(mixer: MixerPart) -> int | None:
    """The window by which the reference's cache drops rows; None where it keeps them all."""
    return next((cache.reference_window for cache in mixer.caches() if cache.reference_window is not None), None)


def _window(window: int | None) -> str:
    return "no window" if window is None else f"a window of {window}"


def _causality(side: _Side, result: ProbeResult, own: Tensor) -> Invariant:
    """Other tokens at the end leave the logits before them as they were."""
    ids = result.probe.input_ids.clone()
    ids[:, -_CHANGED:] = ids[:, -_CHANGED:].flip(-1) // 2
    changed = side.logits(replace(result.probe, input_ids=ids))
    before = result.probe.real.clone()
    before[:, -_CHANGED:] = False
    return _within("causality", _times(changed, own, before, result.tied, result.floor))


def _cache(side: _Side, result: ProbeResult, own: Tensor) -> Invariant:
    """One full pass gives what prefill, steps and chunks gave."""
    whole = side.logits(replace(result.probe, chunks=None))
    return _within("cache equivalence", _times(own, whole, result.probe.real, result.tied, result.floor))


def _padding(side: _Side, result: ProbeResult, own: Tensor) -> Invariant:
    """A padded row of a batch gives what the row alone gives."""
    worst = 0.0
    for row, real in enumerate(result.probe.real):
        ids = result.probe.input_ids[row, real][None]
        alone = side.logits(Probe("row", "a row alone", ids))
        tied = result.tied[row, real][None]
        times = _times(own[row, real][None], alone, torch.ones_like(ids).bool(), tied, result.floor)
        worst = max(worst, times)
    return _within("padding independence", worst)


def _times(ours: Tensor, theirs: Tensor, judged: Tensor, tied: Tensor, floor: Floor) -> float:
    """How far two runs of a port are apart, in floors."""
    return floor.times(deviation(ours, theirs, up_to_a_tie(ours, theirs, judged, tied, floor)))


def _within(name: str, times: float) -> Invariant:
    return Invariant(name, times <= BOUND, times, "times the floor", f"at most {BOUND:.0f} expected")
