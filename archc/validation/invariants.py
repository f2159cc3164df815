"""Invariants: what must hold of a port whatever its reference says, and of a spec whatever its port does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class _Question:
    """An invariant that is asked on a probe: what a port gives there is compared with what it gives on `further` ones.

    `times` says how far apart they are, in floors.
    """

    name: str
    probe: Probe
    further: tuple[Probe, ...]
    times: Callable[[ProbeResult, Tensor, Sequence[Tensor]], float]

    def refusal(self, port: Port) -> str | None:
        """Why a port cannot be asked; None where it can."""
        refused = ((probe.name, port.refusal(probe)) for probe in self.further)
        return next((f"this port cannot run '{name}': {why}" for name, why in refused if why), None)

    def ask(self, side: Port | Reference, result: ProbeResult, own: Tensor) -> Invariant:
        """Whether a side keeps it that gave `own` on the probe."""
        times = self.times(result, own, [side.logits(probe) for probe in self.further])
        return Invariant(self.name, times <= BOUND, times, "times the floor", f"at most {BOUND:.0f} expected")


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
    by_name = {result.probe.name: result for result in results}
    for question in _questions(architecture, [result.probe for result in results]):
        if refusal := question.refusal(port):
            blind.append(Blind(question.name, refusal))
            continue
        name = question.probe.name
        invariant = question.ask(port, by_name[name], logits[name])
        if not invariant.passed:
            theirs = question.ask(reference, by_name[name], reference.logits(question.probe))
            if not theirs.passed:
                blind.append(
                    Blind(invariant.name, f"the reference itself is {theirs.figure:,.0f} floors from keeping it")
                )
                continue
        found.append(invariant)
    return found, blind


def further_inputs(architecture: Architecture, probes: Sequence[Probe]) -> list[Probe]:
    """What a port is asked for beyond its probes: the inputs that invariants compare them with."""
    return [probe for question in _questions(architecture, probes) for probe in question.further]


def alone_in_padding(reference: Reference, port: Port, result: ProbeResult, own: Tensor) -> bool:
    """Whether a port gives in a padded batch what it gives for each row alone, and the reference does not."""
    question = _padding(result.probe)
    if question.refusal(port) or not question.ask(port, result, own).passed:
        return False
    return not question.ask(reference, result, reference.logits(result.probe)).passed


def _questions(architecture: Architecture, probes: Sequence[Probe]) -> Iterator[_Question]:
    """What is asked, and on which probe."""
    one_row = [probe for probe in probes if probe.chunks is None and len(probe.input_ids) == 1]
    plain = [probe for probe in one_row if probe.position_ids is None and probe.tokens > _CHANGED]
    if plain:
        yield _causality(min(plain, key=lambda one: abs(one.tokens - 64)))
    if length_matters(architecture):
        return
    for probe in probes:
        if probe.chunks is not None:
            yield _cache(probe)
        if len(probe.input_ids) > 1:
            yield _padding(probe)


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


def _causality(probe: Probe) -> _Question:
    """Other tokens at the end leave the logits before them as they were."""
    ids = probe.input_ids.clone()
    ids[:, -_CHANGED:] = ids[:, -_CHANGED:].flip(-1) // 2

    def times(result: ProbeResult, own: Tensor, further: Sequence[Tensor]) -> float:
        before = probe.real.clone()
        before[:, -_CHANGED:] = False
        return _times(further[0], own, before, result.tied, result.floor)

    return _Question("causality", probe, (replace(probe, name=f"{probe.name}, other end", input_ids=ids),), times)


def _cache(probe: Probe) -> _Question:
    """One full pass gives what prefill, steps and chunks gave."""

    def times(result: ProbeResult, own: Tensor, further: Sequence[Tensor]) -> float:
        return _times(own, further[0], probe.real, result.tied, result.floor)

    whole = replace(probe, name=f"{probe.name}, at once", chunks=None)
    return _Question("cache equivalence", probe, (whole,), times)


def _padding(probe: Probe) -> _Question:
    """A padded row of a batch gives what the row alone gives."""
    alone = tuple(
        Probe(f"{probe.name}, row {row + 1} alone", "a row alone", probe.input_ids[row, real][None])
        for row, real in enumerate(probe.real)
    )

    def times(result: ProbeResult, own: Tensor, further: Sequence[Tensor]) -> float:
        return max(
            _times(own[row, real][None], there, torch.ones_like(one.input_ids).bool(), tied[real][None], result.floor)
            for row, (real, tied, one, there) in enumerate(zip(probe.real, result.tied, alone, further, strict=True))
        )

    return _Question("padding independence", probe, alone, times)


def _times(ours: Tensor, theirs: Tensor, judged: Tensor, tied: Tensor, floor: Floor) -> float:
    """How far two runs of a port are apart, in floors."""
    return floor.times(deviation(ours, theirs, up_to_a_tie(ours, theirs, judged, tied, floor)))
