"""Invariants: what must hold of a port whatever its reference says, and of a spec whatever its port does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from archc.analysis.cache import cache_sizes
from archc.architecture.model import Architecture
from archc.errors import IncompleteError
from archc.parts.base import MixerPart
from archc.parts.caches import FullCache, LatentCache
from archc.validation.arrangements import Check, across_windows, arrangement_checks, padding_checks
from archc.validation.parity import BOUND, ProbeResult
from archc.validation.ports import Port
from archc.validation.probes import Blind, Probe, mixers
from archc.validation.reference import Reference

_CACHED = 256
"""Tokens after which the reference's cache is counted: enough for what shrinks or fills up with them,"""
_GROWING = 16
"""or, where every token adds as much as the one before it."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """A property, whether it holds, and the figure that says so: `unit` says of what, `detail` what was expected."""

    name: str
    passed: bool
    figure: float
    unit: Literal["times the floor", "cached numbers", "layers with another window than the reference"]
    detail: str


class _Runs:
    """Logits of a port or of the reference by the name of their probe; those that checks share are run once."""

    def __init__(self, side: Port | Reference, known: Mapping[str, Tensor] | None = None) -> None:
        self._side = side
        self._known = dict(known or {})

    def times(self, check: Check) -> float:
        """By how many floors a check is missed. Raises IncompleteError where an input cannot be run."""
        self._known |= {probe.name: self._logits(probe) for probe in check.shared}
        return check.compare([self._logits(probe) for probe in (*check.shared, *check.probes)])

    def _logits(self, probe: Probe) -> Tensor:
        if probe.name in self._known:
            return self._known[probe.name]
        if why := self._side.refusal(probe):
            raise IncompleteError(why)
        return self._side.logits(probe)


def check_invariants(
    architecture: Architecture,
    reference: Reference,
    port: Port,
    results: list[ProbeResult],
    logits: Mapping[str, Tensor],
    wall: int | None,
    *,
    quick: bool = False,
) -> tuple[list[Invariant], list[Blind]]:
    """Cache size and windows, and everything that must not change with how tokens are arranged.

    `logits` are the port's own, by the probe's name; `wall` is how many positions there are, if that is limited. What
    the reference itself does not keep is not asked of a port, and said to be unseen; so is what a port has no argument
    for. A cache that is no list of keys and values by layer is not looked into. `quick` asks little of an arrangement.
    """
    found, blind = _against_own_cache(architecture, reference, wall), []
    ours, theirs = _Runs(port, logits), _Runs(reference)
    for check in arrangement_checks(architecture, results, quick=quick):
        if check.packs and not getattr(port, "packs", False):
            continue  # positions that begin anew mean nothing to most ports
        if why := next(filter(None, map(port.refusal, (*check.shared, *check.probes))), None):
            blind.append(Blind(check.name, f"this port cannot run it: {why}"))
            continue
        try:
            times = ours.times(check)
        except IncompleteError as error:
            if not check.new_ground:
                raise
            blind.append(Blind(check.name, f"this port cannot run it: {error.problem}"))
            continue
        broken = _broken_by(theirs, check) if times > BOUND else ""
        if broken:
            blind.append(Blind(check.name, broken))
        else:
            found.append(within_bound(check.name, times))
    return found, blind


def _broken_by(reference: _Runs, check: Check) -> str:
    """How the reference misses a check itself; nothing where it keeps it."""
    try:
        times = reference.times(check)
    except IncompleteError as error:
        return f"the reference cannot run it: {error.problem}"
    return f"the reference itself is {times:,.0f} floors from keeping it" if times > BOUND else ""


def alone_in_padding(reference: Reference, port: Port, result: ProbeResult, own: Tensor) -> bool:
    """Whether a port gives in a padded batch what it gives for each row alone, and the reference does not."""
    independence = next(padding_checks(result))
    if any(port.refusal(probe) for probe in (*independence.shared, *independence.probes)):
        return False
    kept = _Runs(port, {result.probe.name: own}).times(independence) <= BOUND
    return kept and bool(_broken_by(_Runs(reference), independence))


def missed_across_windows(
    architecture: Architecture, reference: Reference, port: Port, results: Sequence[ProbeResult]
) -> Iterator[Invariant]:
    """Caches past a window that a port misses, and the reference keeps."""
    ours, theirs = _Runs(port), _Runs(reference)
    for check in across_windows(architecture, results):
        times = ours.times(check)
        if times > BOUND and not _broken_by(theirs, check):
            yield within_bound(check.name, times)


def _against_own_cache(architecture: Architecture, reference: Reference, wall: int | None) -> list[Invariant]:
    """Transformers' own cache holds as many numbers as the spec says, and has the windows that it says.

    A window longer than every probe shows nowhere else.
    """
    kinds = {cache.kind for mixer in mixers(architecture) for cache in mixer.caches()}
    enough = _GROWING if kinds <= {FullCache.kind, LatentCache.kind} else _CACHED
    tokens = min(enough, wall or enough)
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


def within_bound(name: str, times: float) -> Invariant:
    """What holds where two runs of a port are at most BOUND floors apart."""
    return Invariant(name, times <= BOUND, times, "times the floor", f"at most {BOUND:.0f} expected")
