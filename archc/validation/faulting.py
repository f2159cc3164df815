"""What mistakes have to do with a run of the gate: which it would have seen, and which explain a port that fails.

Where a port passes, every mistake that the model can have is planted and tried. Those that survive are tried again on
rescaled copies of the checkpoint, on which the port is judged too. Where it fails, on either, the mistakes behind that
are looked for.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from archc.architecture import Compiled
from archc.architecture.model import Architecture
from archc.checkpoints.manifest import knows_tensors
from archc.codegen import UngeneratedError, refuse_ungenerated
from archc.errors import IncompleteError
from archc.faults.base import Fault
from archc.validation.adequacy import Adequacy, Bench, Trial, see_fields, settle, try_mutants
from archc.validation.diagnosis import Diagnosis, diagnose
from archc.validation.evidence import Case, Side
from archc.validation.parity import Baseline, ProbeResult, judge, measure
from archc.validation.ports import GeneratedPort, OpenPort, Port
from archc.validation.probes import Blind, derive_probes
from archc.validation.reference import Reference
from archc.validation.rescaled import RESCALINGS, Rescaling, write_rescaled
from archc.validation.rewritten import refusal
from archc.validation.workshop import Mutant, Workshop, mutants_of

_RESCALED_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Judged:
    """A port beside its reference: the baselines, and what the port gave on each, by the probe's name."""

    reference: Reference
    port: Port
    baselines: list[Baseline]
    logits: Mapping[str, Tensor]
    unreached: frozenset[str] = frozenset()
    """Fields that take longer inputs than there are to show."""


@dataclass
class Faulting:
    """What was found: further probes, fields seen and not, mutants, and an explanation."""

    probes: list[ProbeResult] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    blind: list[Blind] = field(default_factory=list)
    adequacy: Adequacy | None = None
    diagnosis: Diagnosis | None = None


def look_for_faults(
    compiled: Compiled,
    folder: Path,
    judged: Judged,
    open_port: OpenPort,
    catalogue: Sequence[Fault],
    step: Callable[[str], None],
    *,
    passed: bool,
) -> Faulting:
    """Tries the catalogue's mistakes on a model that has been judged; `passed` says with what end."""
    architecture, found = compiled.architecture, Faulting()
    try:
        refuse_ungenerated(architecture)
    except UngeneratedError as error:
        found.blind.append(Blind("faults", f"none can be planted: {error.problem}"))
        return found
    mutants = mutants_of(architecture, catalogue)
    port = judged.port
    workshop = _workshop(architecture, folder, judged)
    if not passed:
        found.diagnosis = _diagnosis(judged, workshop, mutants, step)
        return found
    bench = Bench(judged.reference, judged.baselines, workshop, step, judged.unreached)
    found.adequacy = try_mutants(bench, mutants, thorough=False)
    found.observed, found.blind = see_fields(bench, compiled.loaded, found.adequacy)
    _on_other_weights(bench, compiled, folder, port, open_port, mutants, found)
    return found


def _on_other_weights(
    bench: Bench,
    compiled: Compiled,
    folder: Path,
    port: Port,
    open_port: OpenPort,
    mutants: Sequence[Mutant],
    found: Faulting,
) -> None:
    """The port on rescaled checkpoints, where something has gone unseen; then the mistakes that are none."""
    architecture, adequacy = compiled.architecture, found.adequacy
    assert adequacy is not None
    with contextlib.ExitStack() as stack:
        benches = [bench]
        for rescaling in RESCALINGS:
            if not adequacy.survived and not found.blind:
                break
            if why := _unable(architecture, folder, port):
                found.blind.append(Blind(rescaling.name, why))
                continue
            into = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            bench.step(f"checkpoint with {rescaling.name}")
            try:
                write_rescaled(architecture, folder, into, rescaling)
                again = _judge_again(architecture, into, bench.reference.dtype, open_port, rescaling, bench.step)
            except IncompleteError as error:
                found.blind.append(Blind(rescaling.name, error.problem))
                continue
            workshop = _workshop(architecture, into, again)
            results = [judge(again.reference, one, again.logits[one.probe.name]) for one in again.baselines]
            found.probes += results
            if not all(result.passed for result in results):
                found.diagnosis = _diagnosis(again, workshop, mutants, bench.step)
                return
            benches.append(Bench(again.reference, again.baselines, workshop, bench.step, bench.unreached))
            _try_survivors(benches[-1], adequacy.survived, compiled, found, adequacy)
        hasty = [trial for trial in adequacy.survived if trial.tried < len(bench.baselines)]
        _try_survivors(bench, hasty, compiled, found, adequacy)
        settle(adequacy, *benches)


def _workshop(architecture: Architecture, folder: Path, judged: Judged) -> Workshop:
    own = judged.port if isinstance(judged.port, GeneratedPort) else None
    if own is None:
        return Workshop(architecture, GeneratedPort(architecture, folder, judged.reference.dtype))
    return Workshop(architecture, own, judged.logits)


def _unable(architecture: Architecture, folder: Path, port: Port) -> str | None:
    """Why there is no rescaled checkpoint for a port; None where there is."""
    if not port.reloads:
        return "this port cannot load another checkpoint"
    if architecture.family is None or not knows_tensors(architecture):
        return "where the family stores its tensors is not known"
    return refusal(folder)


def _judge_again(
    architecture: Architecture,
    folder: Path,
    dtype: torch.dtype,
    open_port: OpenPort,
    rescaling: Rescaling,
    step: Callable[[str], None],
) -> Judged:
    """Reference and port of another checkpoint, on one probe."""
    reference = Reference(folder, architecture=architecture, dtype=dtype)
    port = open_port(architecture, folder)
    wall = architecture.embedding.positions or reference.wall(architecture.context, _RESCALED_TOKENS)
    derived, _ = derive_probes(architecture, avoid=reference.padding, wall=wall)
    plain = [one for one in derived if one.chunks is None and one.position_ids is None and len(one.input_ids) == 1]
    probe = min(plain, key=lambda one: abs(one.tokens - _RESCALED_TOKENS))
    probes = [replace(probe, name=rescaling.name, purpose=rescaling.purpose)]
    baselines, _ = measure(reference, probes, step, quick=True)
    step(f"port: {rescaling.name}")
    return Judged(reference, port, baselines, {rescaling.name: port.logits(probes[0])})


def _try_survivors(
    bench: Bench, survived: Sequence[Trial], compiled: Compiled, found: Faulting, adequacy: Adequacy
) -> None:
    """Mutants that nothing showed so far, and fields, on other weights or on more probes."""
    if not survived and not found.blind:
        return
    again = try_mutants(bench, [trial.mutant for trial in survived])
    adequacy.killed += again.killed
    dead = {id(trial.mutant) for trial in again.killed}
    left = {id(trial.mutant): trial for trial in again.survived}
    adequacy.survived = [
        _furthest(trial, left.get(id(trial.mutant))) for trial in adequacy.survived if id(trial.mutant) not in dead
    ]
    observed, _ = see_fields(bench, compiled.loaded, adequacy, only={one.field for one in found.blind})
    found.observed = list(dict.fromkeys(found.observed + observed))
    found.blind = [one for one in found.blind if one.field not in found.observed]


def _furthest(trial: Trial, again: Trial | None) -> Trial:
    """What showed a mutant best in two trials of it."""
    best = trial if again is None or trial.times_floor >= again.times_floor else again
    return replace(best, tried=max(trial.tried, again.tried if again else 0))


def _diagnosis(judged: Judged, workshop: Workshop, mutants: Sequence[Mutant], step: Callable[[str], None]) -> Diagnosis:
    """What explains a port that failed; where the spec itself is not the reference's, what explains the reference."""
    step("diagnosis")
    reference, baselines = judged.reference, judged.baselines
    theirs = Side({one.probe.name: one.logits for one in baselines}, reference.points)
    spec = Side({one.probe.name: workshop.right(one.probe) for one in baselines}, workshop.correct.points)
    if not all(judge(reference, one, spec.logits[one.probe.name]).passed for one in baselines):
        return replace(diagnose(Case(reference, baselines, theirs, spec), workshop, mutants, step), of="reference")
    port = Side(judged.logits, judged.port.points)
    return diagnose(Case(reference, baselines, port, theirs), workshop, mutants, step)
