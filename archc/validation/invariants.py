"""Invariants: what must hold of a port whatever its reference says, and of a spec whatever its port does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from archc.analysis.cache import cache_sizes
from archc.architecture.model import Architecture
from archc.validation.parity import BOUND, Floor, ProbeResult, deviation, up_to_a_tie
from archc.validation.ports import Port
from archc.validation.probes import Probe, mixers, reference_can_cache
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


def check_invariants(
    architecture: Architecture,
    reference: Reference,
    port: Port,
    results: list[ProbeResult],
    logits: Mapping[str, Tensor],
) -> list[Invariant]:
    """Cache size and causality; where rotations do not depend on the length of the input, also cache and padding.

    `logits` are the port's own, by the probe's name. A cache that is no list of keys and values by layer is not looked
    into.
    """
    found = _against_own_cache(architecture, reference)
    one_row = [r for r in results if r.probe.chunks is None and len(r.probe.input_ids) == 1]
    plain = [r for r in one_row if r.probe.position_ids is None and r.probe.tokens > _CHANGED]
    if plain:
        result = min(plain, key=lambda one: abs(one.probe.tokens - 64))
        found.append(_causality(port, result, logits[result.probe.name]))
    if length_matters(architecture):
        return found
    for result in results:
        own = logits[result.probe.name]
        if result.probe.chunks is not None:
            found.append(_cache(port, result, own))
        if len(result.probe.input_ids) > 1:
            found.append(_padding(port, result, own))
    return found


def length_matters(architecture: Architecture) -> bool:
    """Whether rotations depend on the length of the input."""
    return any(mixer.rope is not None and mixer.rope.length_matters for mixer in mixers(architecture))


def _against_own_cache(architecture: Architecture, reference: Reference) -> list[Invariant]:
    """Transformers' own cache holds as many numbers as the spec says, and has the windows that it says.

    A window longer than every probe shows nowhere else.
    """
    tokens = min(_CACHED, architecture.embedding.positions or _CACHED)
    held = reference.cached(tokens)
    if held is None or len(held.windows) != len(architecture.layers):
        return []
    declared = [mixer.window for mixer in mixers(architecture)]
    other = [
        f"layer {layer}: {_window(ours)} declared, {_window(theirs)} in the reference"
        for layer, (ours, theirs) in enumerate(zip(declared, held.windows, strict=True))
        if ours != theirs
    ]
    windows = Invariant(
        "windows", not other, len(other), "layers with another window than the reference", other[0] if other else ""
    )
    if not reference_can_cache(architecture):
        return [windows]
    sizes = cache_sizes(architecture, context=tokens, batch=1, dtype="float32", state_dtype="float32")
    size = sizes["reference_elements_at_context"]
    detail = f"{size:,} declared, {held.elements:,} in the reference, after {tokens} tokens"
    return [Invariant("cache size", size == held.elements, held.elements, "cached numbers", detail), windows]


def _window(window: int | None) -> str:
    return "no window" if window is None else f"a window of {window}"


def _causality(port: Port, result: ProbeResult, own: Tensor) -> Invariant:
    """Other tokens at the end leave the logits before them as they were."""
    ids = result.probe.input_ids.clone()
    ids[:, -_CHANGED:] = ids[:, -_CHANGED:].flip(-1) // 2
    changed = port.logits(replace(result.probe, input_ids=ids))
    before = result.probe.real.clone()
    before[:, -_CHANGED:] = False
    return _within("causality", _times(changed, own, before, result.tied, result.floor))


def _cache(port: Port, result: ProbeResult, own: Tensor) -> Invariant:
    """One full pass gives what prefill, steps and chunks gave."""
    whole = port.logits(replace(result.probe, chunks=None))
    return _within("cache equivalence", _times(own, whole, result.probe.real, result.tied, result.floor))


def _padding(port: Port, result: ProbeResult, own: Tensor) -> Invariant:
    """A padded row of a batch gives what the row alone gives."""
    worst = 0.0
    for row, real in enumerate(result.probe.real):
        ids = result.probe.input_ids[row, real][None]
        alone = port.logits(Probe("row", "a row alone", ids))
        tied = result.tied[row, real][None]
        times = _times(own[row, real][None], alone, torch.ones_like(ids).bool(), tied, result.floor)
        worst = max(worst, times)
    return _within("padding independence", worst)


def _times(ours: Tensor, theirs: Tensor, judged: Tensor, tied: Tensor, floor: Floor) -> float:
    """How far two runs of a port are apart, in floors."""
    return floor.times(deviation(ours, theirs, up_to_a_tie(ours, theirs, judged, tied, floor)))


def _within(name: str, times: float) -> Invariant:
    return Invariant(name, times <= BOUND, times, "times the floor", f"at most {BOUND:.0f} expected")
