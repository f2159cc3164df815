"""Adequacy: would the gate have seen it? Every mistake that the model can have is planted and put through the probes.

A probe kills a mutant when it moves logits by more than BOUND floors, that is, when a port with this mistake would have
failed; in 16 bits also when a layer that is judged alone moves. So does the invariant of a cache past a window, which
may be longer than what the probes decode. One that survives all this is equivalent if its logits are the right ones in
64-bit arithmetic too, up to rounding, and there is a reason for it; else the gate is blind to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from archc.faults.base import IN_32_BITS
from archc.faults.catalogue import CATALOGUE
from archc.faults.flips import field_of, flips, stated_fields
from archc.spec.load import LoadedSpec
from archc.validation.blockwise import layer_by_layer, probes_for_layers
from archc.validation.invariants import missed_across_windows
from archc.validation.parity import BOUND, Baseline, Floor, judge, times_floor
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Blind, length_matters
from archc.validation.reference import Reference
from archc.validation.rescaled import may_show
from archc.validation.workshop import Mutant, Unmade, Workshop
from archc.validation.yardstick import Yardstick

_DECLARABLE = {fault.field for fault in CATALOGUE if fault.kind == "architecture"}
"""Fields of the language, which a spec may leave to their defaults."""
_FEW = 8
"""Positions of a probe that by itself says too little."""
_EQUAL = 1e-10
"""Logits that differ by less, relative to the largest, are equal in 64-bit arithmetic."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What mutants are tried on: the reference, its baselines, and a workshop; `step` is told what is about to run."""

    reference: Reference
    baselines: Sequence[Baseline]
    workshop: Workshop
    step: Callable[[str], None]
    unreached: frozenset[str] = frozenset()
    """Fields that take longer inputs than there are to show."""
    yardsticks: dict[str, Yardstick] = field(default_factory=dict)
    """By the name of a probe, what layers are held against, once it was asked for."""

    def by_layer(self) -> Iterator[Yardstick]:
        """What layers that are judged alone are held against, on every probe that is worth it."""
        choices = {one.probe.name: one.choices for one in self.baselines}
        for probe in probes_for_layers(self.workshop.clean.architecture, [one.probe for one in self.baselines]):
            if probe.name not in self.yardsticks:
                self.yardsticks[probe.name] = Yardstick(self.reference, probe, choices[probe.name], fed=True)
            yield self.yardsticks[probe.name]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant: `times_floor` is how far it moved logits on the probe that showed it best, or first."""

    mutant: Mutant
    probe: str
    times_floor: float
    moved: bool = True
    """Whether any bit of any logit is another than the correct port's."""
    tried: int = 0
    """On how many probes it was tried."""


@dataclass(frozen=True, slots=True)
class Spared:
    """A mutant that nothing kills, because it is no mistake here."""

    mutant: Mutant
    why: str


@dataclass
class Adequacy:
    """The mutants of a run: killed by a probe, refused when weights are loaded, equivalent, or survived."""

    killed: list[Trial] = field(default_factory=list)
    loud: list[Spared] = field(default_factory=list)
    equivalent: list[Spared] = field(default_factory=list)
    survived: list[Trial] = field(default_factory=list)
    unmade: list[Spared] = field(default_factory=list)
    """Those that this model cannot be given, which say nothing about the gate."""

    @property
    def applicable(self) -> int:
        """Mutants that could be made, or that loading refuses."""
        return len(self.killed) + len(self.loud) + len(self.equivalent) + len(self.survived)

    @property
    def score(self) -> float:
        """The share of mutants that the gate sees, of those that are mistakes."""
        seen = len(self.killed) + len(self.loud)
        return seen / (seen + len(self.survived)) if seen + len(self.survived) else 1.0

    def observed(self) -> list[str]:
        """Fields of which some mistake was seen, in the order of the trials."""
        seen = [trial.mutant for trial in self.killed] + [spared.mutant for spared in self.loud]
        return list(dict.fromkeys(mutant.fault.field for mutant in seen))


def try_mutants(
    bench: Bench, mutants: Iterable[Mutant], *, until_seen: bool = False, thorough: bool = True
) -> Adequacy:
    """Puts every mutant through the probes of the baselines until one kills it; `until_seen` ends with the first.

    Unless `thorough`, a mutant that other weights may show, and that changes no bit on the first probes, is not tried
    on the rest.
    """
    found = Adequacy()
    for mutant in mutants:
        if until_seen and (found.killed or found.loud):
            break
        bench.step(f"would it be seen: {mutant.name}")
        port = bench.workshop.make(mutant)
        if isinstance(port, Unmade):
            (found.loud if port.loud else found.unmade).append(Spared(mutant, port.why))
            continue
        given: dict[str, torch.Tensor] = {}
        trial = _try_one(bench, mutant, port, given, thorough=thorough)
        if trial.times_floor <= BOUND:
            trial = _past_windows(bench, mutant, port) or trial
        if trial.times_floor > BOUND:
            found.killed.append(trial)
        elif not may_show(mutant.fault.field) and (why := _why_equal(bench, mutant, port, given)):
            found.equivalent.append(Spared(mutant, why))
        else:
            found.survived.append(replace(trial, moved=_moved(bench, given), tried=len(given)))
    return found


def settle(found: Adequacy, *benches: Bench) -> None:
    """Tells those survivors that compute what the correct port does, on every bench, from those that are missed."""
    for trial in list(found.survived):
        reasons = []
        for bench in benches:
            port = bench.workshop.make(trial.mutant)
            assert isinstance(port, GeneratedPort)  # it has been made before
            reasons.append(_why_equal(bench, trial.mutant, port, {}))
        if all(reasons):
            found.survived.remove(trial)
            found.equivalent.append(Spared(trial.mutant, str(reasons[0])))


def see_fields(
    bench: Bench, loaded: LoadedSpec, found: Adequacy, only: Container[str] | None = None
) -> tuple[list[str], list[Blind]]:
    """The stated fields that the probes see, and those that they are blind to, with the reason.

    A field is seen where some mistake in it was, or where it moves logits, or what is loaded, with another value. What
    no code depends on is neither. `only` limits the search to some fields.
    """
    stated = {field_of(path) for path in stated_fields(loaded)}
    seen = [one for one in found.observed() if one in stated or one in _DECLARABLE]
    survivors = {trial.mutant.fault.field: trial for trial in found.survived}
    blind: dict[str, str] = {}
    for path in stated_fields(loaded):
        field_name = field_of(path)
        if field_name in seen or (only is not None and field_name not in only):
            continue
        fault = flips(loaded, path)
        tried = [Mutant(fault, slip) for slip in fault.slips(bench.workshop.clean.architecture)]
        trials = try_mutants(bench, tried, until_seen=True)
        if trials.killed or trials.loud:
            seen.append(field_name)
            blind.pop(field_name, None)
        elif any(trial.moved for trial in trials.survived) or _hidden(bench, field_name):
            survivors.setdefault(field_name, trials.survived[0])
    for field_name, trial in survivors.items():
        if field_name not in seen:
            moved = f"{trial.mutant.slip.behaves_as} for {trial.mutant.slip.declared} moves logits by"
            blind[field_name] = f"{moved} {trial.times_floor:.2f} floors at most, and {BOUND:.0f} would be seen"
    return seen, [Blind(field_name, why, declared=True) for field_name, why in blind.items()]


def _moved(bench: Bench, given: Mapping[str, torch.Tensor]) -> bool:
    """Whether any bit of what a mutant has given is another than the correct port's."""
    probes = [one.probe for one in bench.baselines if one.probe.name in given]
    return any(not torch.equal(given[probe.name], bench.workshop.right(probe)) for probe in probes)


def _hidden(bench: Bench, field_name: str) -> bool:
    """Whether a field may matter that changes no bit of the logits here."""
    return may_show(field_name) or field_name in bench.unreached


def _try_one(
    bench: Bench, mutant: Mutant, port: GeneratedPort, given: dict[str, torch.Tensor], *, thorough: bool
) -> Trial:
    """The first probe that kills a mutant, or the one on which it moves logits most; cheap ones come first.

    What the port gives is kept in `given`, by the probe's name.
    """
    best, patient = Trial(mutant, "", -1.0), not _may_idle(bench, mutant, thorough=thorough)
    for baseline in _cheapest_first(bench, mutant):
        given[baseline.probe.name], times = _against(bench.reference, baseline, port)
        if times > best.times_floor:
            best = Trial(mutant, baseline.probe.name, times)
        if best.times_floor > BOUND:
            return best
        if not patient and baseline.probe.input_ids.numel() > _FEW and not _moved(bench, given):
            return best
    return best if bench.reference.dtype is torch.float32 else _alone(bench, mutant, port) or best


def _cheapest_first(bench: Bench, mutant: Mutant) -> list[Baseline]:
    """The baselines in the order in which a mutant is tried: those that its fault names, then the rest."""
    named = mutant.fault.probes
    return sorted(bench.baselines, key=lambda one: (one.probe.name not in named, one.probe.input_ids.numel()))


def _against(reference: Reference, baseline: Baseline, port: GeneratedPort) -> tuple[torch.Tensor, float]:
    """A port's logits on a probe, up to the piece that gives it away, and by how many floors they are off."""
    probe, pieces, start = baseline.probe, [], 0
    for piece in port.stream(probe):
        pieces.append(piece)
        end = start + piece.shape[1]
        if probe.chunks is not None and not baseline.choices.calls:
            times = times_floor(reference, _part(baseline, start, end), piece)
            if times > BOUND:
                return torch.cat(pieces, dim=1), times
        start = end
    logits = torch.cat(pieces, dim=1)
    return logits, times_floor(reference, baseline, logits)


def _part(baseline: Baseline, start: int, end: int) -> Baseline:
    """A piece of a baseline. Its floor is such that what exceeds it exceeds that of the whole: squares add up."""
    probe, floor = baseline.probe, baseline.floor
    mask = None if probe.attention_mask is None else probe.attention_mask[:, start:end]
    part = replace(probe, input_ids=probe.input_ids[:, start:end], position_ids=None, attention_mask=mask, chunks=None)
    share = math.sqrt(max(part.tokens, 1) / max(probe.tokens, 1))
    return replace(
        baseline, probe=part, logits=baseline.logits[:, start:end], floor=Floor(floor.max_abs, floor.rms / share)
    )


def _may_idle(bench: Bench, mutant: Mutant, *, thorough: bool) -> bool:
    """Whether nothing is expected of a mutant on more probes, once it has changed no bit on some.

    It rounds what a model in 32 bits does not round, or other weights will show it better.
    """
    if mutant.fault.same_when == IN_32_BITS:
        return bench.reference.dtype is torch.float32
    return not thorough and may_show(mutant.fault.field)


def _past_windows(bench: Bench, mutant: Mutant, port: GeneratedPort) -> Trial | None:
    """The window past which a mistake in a cache shows, where that is longer than the probes that decode."""
    architecture = bench.workshop.clean.architecture
    decodes = any(one.probe.chunks and one.probe.name in mutant.fault.probes for one in bench.baselines)
    if not decodes or length_matters(architecture):
        return None
    whole = [one for one in bench.baselines if one.probe.chunks is None]
    results = [judge(bench.reference, one, bench.workshop.right(one.probe)) for one in whole]
    missed = next(missed_across_windows(architecture, bench.reference, port, results), None)
    return Trial(mutant, missed.name, missed.figure) if missed else None


def _alone(bench: Bench, mutant: Mutant, port: GeneratedPort) -> Trial | None:
    """The probe on which a layer by itself shows a mutant that 16-bit logits hide; None where none does."""
    for yardstick in bench.by_layer():
        found = layer_by_layer(yardstick, port)
        if found is not None and found.first is not None:
            times = found.first.times_floor * BOUND / found.bound
            return Trial(mutant, f"{found.probe}, {found.first.point} alone", times)
    return None


def _why_equal(bench: Bench, mutant: Mutant, port: GeneratedPort, given: Mapping[str, torch.Tensor]) -> str | None:
    """Why a mutant computes what the correct port does; None where it does not, or nothing says why.

    What it has `given` on probes is not worked out again. Logits are compared to the last bit, and where they differ,
    in 64-bit arithmetic. Where probes cannot reach what a field does, equal logits say nothing.
    """
    reason = bench.workshop.idle(port) or mutant.fault.same_when
    shown_by = mutant.fault.probes
    if shown_by and not any(one.probe.name in shown_by for one in bench.baselines):
        return None
    narrow = reason == IN_32_BITS and bench.reference.dtype is not torch.float32
    if not reason or narrow or mutant.fault.field in bench.unreached:
        return None
    in_double: GeneratedPort | Unmade | None = None
    tried = given or {one.probe.name for one in bench.baselines}
    for baseline in sorted(bench.baselines, key=lambda one: one.probe.input_ids.numel()):
        probe = baseline.probe
        if probe.name not in tried:
            continue  # what idles in 32 bits is not tried on every probe
        ours = given[probe.name] if probe.name in given else port.logits(probe)
        if torch.equal(ours, bench.workshop.right(probe)):
            continue
        in_double = in_double or bench.workshop.make(mutant, dtype=torch.float64)
        if isinstance(in_double, Unmade):
            return None
        right = bench.workshop.right(probe, torch.float64)
        difference = (in_double.logits(probe) - right)[probe.real].abs().max()
        if not float(difference) <= _EQUAL * float(right.abs().max()):
            return None
    return reason
