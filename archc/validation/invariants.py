"""Invariants: what must hold of a port whatever its reference says, and of a spec whatever its port does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from archc.analysis.cache import cache_sizes
from archc.architecture.model import Architecture
from archc.validation.parity import BOUND, Baseline, deviation
from archc.validation.ports import Port
from archc.validation.probes import Probe
from archc.validation.reference import Reference

_CHANGED = 4
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property, whether it holds, and the figure that says so: `unit` says of what."""

    name: str
    passed: bool
    figure: float
    unit: Literal["times the floor", "cached numbers", "layers with another window than the reference"]


def check_invariants(
    architecture: Architecture,
    reference: Reference,
    port: Port,
    baselines: list[Baseline],
    logits: Mapping[str, Tensor],
) -> list[Invariant]:
    """Cache size and causality; where rotations do not depend on the length of the input, also cache and padding.

    `logits` are the port's own, by the probe's name.
    """
    found = _against_own_cache(architecture, reference)
    one_row = [b for b in baselines if b.probe.chunks is None and len(b.probe.input_ids) == 1]
    plain = [b for b in one_row if b.probe.position_ids is None and b.probe.tokens > _CHANGED]
    if plain:
        baseline = min(plain, key=lambda one: abs(one.probe.tokens - 64))
        found.append(_causality(port, baseline, logits[baseline.probe.name]))
    if _length_matters(architecture):
        return found
    for baseline in baselines:
        own = logits[baseline.probe.name]
        if baseline.probe.chunks is not None:
            found.append(_cache(port, baseline, own))
        if len(baseline.probe.input_ids) > 1:
            found.append(_padding(port, baseline, own))
    return found


def _length_matters(architecture: Architecture) -> bool:
    return any(layer.mixer.rope is not None and layer.mixer.rope.length_matters for layer in architecture.layers)


def _against_own_cache(architecture: Architecture, reference: Reference) -> list[Invariant]:
    """Transformers' own cache holds as many numbers as the spec says, and has the windows that it says.

    A window longer than every probe shows nowhere else.
    """
    tokens = min(_CACHED, architecture.embedding.positions or _CACHED)
    sizes = cache_sizes(architecture, context=tokens, batch=1, dtype="float32")
    held = reference.cached(tokens)
    declared = [layer.mixer.window for layer in architecture.layers]
    other = sum(ours != theirs for ours, theirs in zip(declared, held.windows, strict=True))
    return [
        Invariant(
            "cache size", sizes["reference_elements_at_context"] == held.elements, held.elements, "cached numbers"
        ),
        Invariant("windows", other == 0, other, "layers with another window than the reference"),
    ]


def _causality(port: Port, baseline: Baseline, own: Tensor) -> Invariant:
    """Other tokens at the end leave the logits before them as they were."""
    ids = baseline.probe.input_ids.clone()
    ids[:, -_CHANGED:] = ids[:, -_CHANGED:].flip(-1) // 2
    changed = port.logits(replace(baseline.probe, input_ids=ids))
    before = baseline.judged.clone()
    before[:, -_CHANGED:] = False
    return _within("causality", baseline.floor.times(deviation(changed, own, before)))


def _cache(port: Port, baseline: Baseline, own: Tensor) -> Invariant:
    """One full pass gives what prefill, steps and chunks gave."""
    whole = port.logits(replace(baseline.probe, chunks=None))
    return _within("cache equivalence", baseline.floor.times(deviation(own, whole, baseline.judged)))


def _padding(port: Port, baseline: Baseline, own: Tensor) -> Invariant:
    """A padded row of a batch gives what the row alone gives."""
    worst = 0.0
    for row, real in enumerate(baseline.probe.real):
        ids = baseline.probe.input_ids[row, real][None]
        alone = port.logits(Probe("row", "a row alone", ids))
        judged = torch.ones_like(ids).bool() & baseline.judged[row, real][None]
        times = baseline.floor.times(deviation(own[row, real][None], alone, judged))
        worst = max(worst, times)
    return _within("padding independence", worst)


def _within(name: str, times: float) -> Invariant:
    return Invariant(name, times <= BOUND, times, "times the floor")
