"""The gate: static check, reference and floor, port, verdict. One function, `run_gate`, in that order."""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from archc.architecture import Architecture, Compiled
from archc.checkpoints.manifest import build_manifest
from archc.errors import IncompleteError
from archc.families import family
from archc.faults.base import Fault
from archc.spec.language import BranchFields
from archc.validation.adequacy import Adequacy
from archc.validation.arrangements import further_inputs, typical_of
from archc.validation.blockwise import Blockwise, blockwise, probes_for_layers
from archc.validation.declared import ConfigResult, compare_config
from archc.validation.diagnosis import Diagnosis
from archc.validation.divergence import Divergence, first_divergence
from archc.validation.faulting import Judged, look_for_faults
from archc.validation.gains import GainDoubt, doubtful_gains
from archc.validation.invariants import Invariant, alone_in_padding, check_invariants
from archc.validation.parity import BOUND, Baseline, FloorRun, ProbeResult, judge, measure
from archc.validation.plain import opener_of, plain_form
from archc.validation.ports import Batching, GeneratedPort, Port, Traceable
from archc.validation.probes import LONGEST, UNUSED, Blind, Probe, derive_probes, length_matters
from archc.validation.rearranged import check_rearranged
from archc.validation.reference import Reference
from archc.validation.static import ManifestResult, compare_manifest
from archc.validation.text import TextLoss, Tokens, known_tokens, read_tokens, text_loss, text_probe

Step = Callable[[str], None]


@dataclass
class GateResult:
    """Everything that a run of the gate found. Seconds are wall-clock, memory is the process's peak in bytes."""

    spec_name: str
    spec_sha256: str
    manifest: ManifestResult
    config: ConfigResult
    dequantised: str = ""
    """How the checkpoint is quantised; empty where it is not. The reference has its weights in plain float32."""
    dtype: torch.dtype = torch.float32
    """In which both sides ran."""
    port_kind: str = ""
    port_name: str = ""
    reference_version: str = ""
    planned: int = 0
    """Probes that the spec asks for, those included that one side cannot run."""
    probes: list[ProbeResult] = field(default_factory=list)
    floor_runs: list[FloorRun] = field(default_factory=list)
    disagreement: float | None = None
    steps_against_whole: bool = False
    """Whether the port's steps through its cache are held against the reference's full pass."""
    blind: list[Blind] = field(default_factory=list)
    gains: tuple[GainDoubt, ...] = ()
    """Norms whose stored weights look like another convention: a warning."""
    invariants: list[Invariant] = field(default_factory=list)
    divergence: Divergence | None = None
    divergence_note: str = ""
    blockwise: Blockwise | None = None
    """The layers judged alone: of a port that fails, or in 16 bits."""
    observed: list[str] = field(default_factory=list)
    """Declared fields in which some mistake would have been seen."""
    adequacy: Adequacy | None = None
    """What became of every mistake that the model can have, where a port passed."""
    diagnosis: Diagnosis | None = None
    """What explains a port that failed."""
    text: TextLoss | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: int = 0

    @property
    def passed(self) -> bool:
        """Whether everything that was tried holds, and something was."""
        return self.manifest.passed and self.config.passed and self.port_holds

    @property
    def port_holds(self) -> bool:
        """Whether the port does what it should on every probe, and something was tried."""
        probes_hold = bool(self.probes) and all(probe.passed for probe in self.probes)
        blocks_hold = self.blockwise is None or self.blockwise.passed
        return probes_hold and blocks_hold and all(invariant.passed for invariant in self.invariants)

    @property
    def strictly_passed(self) -> bool:
        """Whether it passed, and nothing that it can have wrong would have gone unseen.

        A probe that one side cannot run counts by the mistakes that it alone would have shown.
        """
        unseen = any(one.declared for one in self.blind)
        return self.passed and not unseen and self.adequacy is not None and not self.adequacy.survived


def run_gate(
    compiled: Compiled,
    folder: Path,
    step: Step,
    *,
    text: Path | None = None,
    open_port: Callable[[Architecture, Path], Port] = GeneratedPort,
    dtype: torch.dtype = torch.float32,
    catalogue: Sequence[Fault] = (),
) -> GateResult:
    """Holds a port of a spec, with the weights in `folder`, against transformers, in a `dtype`.

    `step` is told what is about to run. `text` is a text file to compare losses on. `open_port` makes the port, by
    default the generated module. Mistakes of the `catalogue` say whether the gate would have seen them, where the port
    passes, and explain the port, where it fails. Raises IncompleteError where the verdict cannot be reached; a port
    that is wrong is a result, not an error.
    """
    architecture = compiled.architecture
    start = time.perf_counter()
    step("checkpoint headers")
    checkpoint = plain_form(architecture, folder)
    manifest = (
        compare_manifest(architecture, checkpoint.tensors)
        if knows_tensors(architecture)
        else ManifestResult((), (), (), ())
    )
    config = compare_config(compiled.loaded.spec, folder)
    result = GateResult(
        architecture.name, fingerprint(compiled), manifest, config, dequantised=checkpoint.method, dtype=dtype
    )
    if manifest.passed:
        result.gains = doubtful_gains(architecture, checkpoint.tensors) if knows_tensors(architecture) else ()
        tokens = None if text is None else read_tokens(architecture, folder, text)
        if checkpoint.method:
            step(f"dequantise {checkpoint.method}")
        with checkpoint.plain() as plain:
            opened = opener_of(open_port, checkpoint, plain)
            opened = partial(GeneratedPort, dtype=dtype) if opened is GeneratedPort else opened
            _run_probes(compiled, plain, tokens, step, opened, catalogue, result)
    result.seconds["total"] = time.perf_counter() - start
    result.peak_memory_bytes = _peak_memory_bytes()
    return result


def fingerprint(compiled: Compiled) -> str:
    """SHA-256 of what the spec declares: not of its layout, its comments, its source or its claims."""
    spec = compiled.loaded.spec
    header = {k: v for k, v in msgspec.to_builtins(spec.header).items() if k not in {"published", "source", "layers"}}
    kinds = {kind: [_declared(branch) for branch in fields.branches] for kind, fields in spec.kinds.items()}
    declared = json.dumps([header, kinds, spec.pattern], sort_keys=True)
    return hashlib.sha256(declared.encode()).hexdigest()


def _declared(branch: BranchFields) -> dict[str, object]:
    around = {"norm": branch.norm, "position": branch.position, "residual": branch.residual}
    sections = {**branch.parts, **around}.items()
    return {"shared": branch.shared, "reads": branch.reads} | {
        name: fields and msgspec.to_builtins(fields) for name, fields in sections
    }


def _run_probes(
    compiled: Compiled,
    folder: Path,
    tokens: Tokens | None,
    step: Step,
    open_port: Callable[[Architecture, Path], Port],
    catalogue: Sequence[Fault],
    result: GateResult,
) -> None:
    architecture = compiled.architecture
    clock = _Clock(result.seconds)
    step("load the reference")
    reference = Reference(folder, architecture=architecture, dtype=result.dtype)
    result.reference_version = reference.version
    if knows_tensors(architecture):
        _require_all_read(architecture, reference, folder, result.manifest)
    else:
        result.blind.append(Blind("tensors", f"where the family {architecture.family} stores them is not known"))
    step("load the port")
    port = open_port(architecture, folder)
    result.port_kind, result.port_name = port.kind, port.name
    clock.lap("load")

    derived, blind, wall = probes_for(architecture, reference, known_tokens(folder))
    result.planned = len(derived)
    if isinstance(port, Batching):
        step("port: all probes")
        port.prepare([*derived, *further_inputs(architecture, derived), *([text_probe(tokens)] if tokens else [])])
        clock.lap("port")
    probes, unseen = _feasible(derived, reference, port, steps_differ=length_matters(architecture))
    result.blind += blind + unseen
    baselines, result.floor_runs = measure(reference, probes, step)
    result.disagreement = _disagreement(reference, baselines)
    result.steps_against_whole = reference.steps_are_whole
    clock.lap("reference")

    logits: dict[str, Tensor] = {}
    for baseline in baselines:
        step(f"port: {baseline.probe.name}")
        logits[baseline.probe.name] = port.logits(baseline.probe)
        result.probes.append(judge(reference, baseline, logits[baseline.probe.name]))
    step("invariants")
    result.invariants, unasked = check_invariants(architecture, reference, port, result.probes, logits, wall)
    result.blind += unasked
    _try_rearranged(compiled, folder, open_port, Judged(reference, port, baselines, logits), result, step)
    if _contradicts_itself(architecture, result.disagreement):
        _hold_steps_against_whole(reference, result, baselines, logits, step)
    _leave_padding_to_the_invariant(reference, port, result, logits)
    _look_inside(architecture, reference, port, result, step)
    if tokens is not None:
        step("loss on a text")
        result.text = text_loss(reference, port, tokens)
    clock.lap("port")
    if catalogue:
        judged = Judged(reference, port, baselines, logits, frozenset(one.field for one in blind))
        found = look_for_faults(compiled, folder, judged, open_port, catalogue, step, passed=result.port_holds)
        result.probes += found.probes
        result.planned += len(found.probes)
        result.blind += found.blind
        result.observed, result.adequacy, result.diagnosis = found.observed, found.adequacy, found.diagnosis
        clock.lap("faults")


def probes_for(
    architecture: Architecture, reference: Reference, known: int | None = None
) -> tuple[list[Probe], list[Blind], int | None]:
    """The probes of an Architecture beside its reference, what they cannot see, and how many positions there are."""
    wall = architecture.embedding.positions or reference.wall(architecture.context, LONGEST)
    return *derive_probes(architecture, avoid=reference.padding, wall=wall, known=known), wall


def _try_rearranged(
    compiled: Compiled,
    folder: Path,
    open_port: Callable[[Architecture, Path], Port],
    judged: Judged,
    result: GateResult,
    step: Step,
) -> None:
    """Adds the invariants that need other weights, tried on a typical probe."""
    typical = typical_of(result.probes)
    if typical is not None and knows_tensors(compiled.architecture):
        step("rearranged weights")
        own = judged.logits[typical.probe.name]
        spec, reference = compiled.loaded.spec, judged.reference
        more, unasked = check_rearranged(spec, folder, open_port, reference, typical, judged.port, own)
        result.invariants += more
        result.blind += unasked


def _hold_steps_against_whole(
    reference: Reference, result: GateResult, baselines: list[Baseline], logits: Mapping[str, Tensor], step: Step
) -> None:
    """Judges steps that leave the reference's own by its full pass, from which its own steps part."""
    for index, one in enumerate(result.probes):
        if one.probe.chunks is not None and not one.passed:
            reference.steps_are_whole = result.steps_against_whole = True
            [baseline], _ = measure(reference, [one.probe], step)
            baselines[index] = baseline
            result.probes[index] = judge(reference, baseline, logits[one.probe.name])


def _leave_padding_to_the_invariant(
    reference: Reference, port: Port, result: GateResult, logits: Mapping[str, Tensor]
) -> None:
    """Takes a padded batch out of the verdict where the reference contradicts its own rows, and the port does not."""
    for one in list(result.probes):
        failed = not one.probe.real.all() and not one.passed
        if failed and alone_in_padding(reference, port, one, logits[one.probe.name]):
            result.probes.remove(one)
            why = "in it the reference contradicts what it computes for each row alone; the port does not"
            result.blind.append(Blind(one.probe.name, why))


def knows_tensors(architecture: Architecture) -> bool:
    """Whether it is known where a checkpoint of this family holds what."""
    return architecture.family is None or bool(family(architecture.family).rules)


def _feasible(
    probes: list[Probe], reference: Reference, port: Port, *, steps_differ: bool
) -> tuple[list[Probe], list[Blind]]:
    """The probes that both sides can run, and what is not seen for want of the others.

    A reference that cannot decode is held against steps of the port all the same, with its full pass, unless
    `steps_differ` from that by right.
    """
    reference.steps_are_whole = not all(reference.can_step(probe) for probe in probes if probe.chunks is not None)
    found, blind = [], []
    for probe in probes:
        if probe.chunks is not None and reference.steps_are_whole and steps_differ:
            why = "the reference cannot decode, and rotations that depend on the length make steps another function"
            blind.append(Blind(probe.name, why))
            continue
        if probe.name == UNUSED and not reference.logits(probe).isfinite().all():
            blind.append(Blind(probe.name, "the reference itself gives no numbers there"))
            continue
        for side, refusal in (("the reference", reference.refusal(probe)), ("this port", port.refusal(probe))):
            if refusal:
                blind.append(Blind(probe.name, f"{side} cannot run the probe: {refusal}"))
                break
        else:
            found.append(probe)
    if not found:
        raise IncompleteError(f"nothing can be compared: {blind[0].why}", "use a port that can run some of the probes")
    return found, blind


def _contradicts_itself(architecture: Architecture, disagreement: float | None) -> bool:
    """Whether the reference's cached run is another function than its full pass, and nothing declared says why.

    Where frequencies depend on the length of the input so far, both may differ.
    """
    return disagreement is not None and disagreement > BOUND and not length_matters(architecture)


def _require_all_read(architecture: Architecture, reference: Reference, folder: Path, found: ManifestResult) -> None:
    """Refuses a reference that leaves tensors out that the spec declares: it would be another, smaller model."""
    normal = build_manifest(architecture).normal
    left = [name for name in reference.unread if normal(name) not in found.unread]
    if left:
        more = f" and {len(left) - 1} more tensors" if len(left) > 1 else ""
        raise IncompleteError(
            f"{folder} is no reference: its config.json has no place for {left[0]}{more}, which its weights hold",
            "its config.json must describe its own weights, with all their layers",
        )


def _divergence(
    reference: Reference, port: Port, probes: list[ProbeResult]
) -> tuple[Divergence | None, str, Blockwise | None]:
    """Where port and reference part, or why that is not known; neither where every probe holds.

    Layers are judged alone where the port lets them be fed.
    """
    failed = [one for one in probes if not one.passed]
    if not failed:
        return None, "", None
    whole = [one for one in failed if one.probe.chunks is None]
    if not whole:
        return None, "not traced: only the probe that decodes through the cache fails", None
    shortest = min(whole, key=lambda one: one.probe.tokens)
    found = blockwise(reference, port, shortest.probe, shortest.choices) if isinstance(port, Traceable) else None
    if found is not None and found.first is not None:
        return found.first, "", found
    ours = port.points(shortest.probe)
    if ours is None:
        return Divergence(None, "logits", shortest.times_floor), "this port shows nothing but its logits", found
    first = first_divergence(reference, ours, shortest)
    return first, "" if first else "none at the traced points", found


def _look_inside(architecture: Architecture, reference: Reference, port: Port, result: GateResult, step: Step) -> None:
    """Adds where port and reference part and, in 16 bits, whether some layer alone does."""
    step("first divergence")
    result.divergence, result.divergence_note, result.blockwise = _divergence(reference, port, result.probes)
    if result.blockwise is None and result.dtype is not torch.float32:
        step("layers")
        result.blockwise = _layer_by_layer(architecture, reference, port, result.probes)


def _layer_by_layer(
    architecture: Architecture, reference: Reference, port: Port, results: list[ProbeResult]
) -> Blockwise | None:
    """Each layer alone, in 16 bits, where logits hide small mistakes: the first probe that shows one, else the last."""
    found: Blockwise | None = None
    choices = {one.probe.name: one.choices for one in results}
    for probe in probes_for_layers(architecture, [one.probe for one in results]):
        found = blockwise(reference, port, probe, choices[probe.name]) if isinstance(port, Traceable) else None
        if found is None or not found.passed:
            return found
    return found


def _disagreement(reference: Reference, baselines: list[Baseline]) -> float | None:
    """How far the reference's own cached run is from its own full pass, in floors; None without such a run."""
    for baseline in baselines:
        if baseline.probe.chunks is not None and not reference.steps_are_whole:
            whole = reference.logits(replace(baseline.probe, chunks=None))
            return judge(reference, baseline, whole).times_floor
    return None


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


def _peak_memory_bytes() -> int:
    """The most memory that the process has held, in bytes (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
