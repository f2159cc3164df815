"""The gate: static check, reference and floor, port, verdict. One function, `run_gate`, in that order."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from archc.architecture import Architecture, Compiled
from archc.architecture.fingerprint import fingerprint
from archc.checkpoints.manifest import knows_tensors
from archc.errors import IncompleteError
from archc.faults.base import Fault
from archc.validation.adequacy import Adequacy
from archc.validation.arrangements import further_inputs, typical_of
from archc.validation.blockwise import Blockwise
from archc.validation.contradictions import (
    contradicts_itself,
    disagreement_of,
    hold_steps_against_whole,
    leave_padding_to_the_invariant,
)
from archc.validation.declared import ConfigResult, compare_config
from archc.validation.diagnosis import Diagnosis
from archc.validation.divergence import Divergence
from archc.validation.faulting import Judged, look_for_faults
from archc.validation.gains import GainDoubt, doubtful_gains
from archc.validation.inside import look_inside
from archc.validation.invariants import Invariant, check_invariants
from archc.validation.parity import FloorRun, ProbeResult, is_prompt, judge, measure
from archc.validation.plain import opener_of, plain_form
from archc.validation.ports import Batching, GeneratedPort, OpenPort, Port
from archc.validation.probes import LONGEST, UNUSED, Blind, Probe, derive_probes, length_matters
from archc.validation.rearranged import check_rearranged
from archc.validation.reference import Reference
from archc.validation.static import ManifestResult, compare_manifest, require_all_read
from archc.validation.streaming.walk import Streamed, Streaming, run_streamed
from archc.validation.text import BESIDE, TextLoss, Tokens, known_tokens, read_tokens, text_loss, text_probe

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
    quick: bool = False
    """Whether only the level was run that looks at short prompts, and plants no mistakes."""
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
    stream: Streamed | None = None
    """How the run went where it was streamed: no more than a layer of each side in memory."""
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


@dataclass(frozen=True, slots=True)
class Level:
    """How much is run, and how.

    `quick` runs short prompts alone, beside the static checks, and says what it leaves out. Where `streaming` is asked
    for, or whole models do not fit in memory, the generated module is validated layer by layer, without text and
    catalogue.
    """

    quick: bool = False
    streaming: Streaming = field(default_factory=Streaming)


def run_gate(
    compiled: Compiled,
    folder: Path,
    step: Step,
    *,
    text: Path | None = None,
    open_port: OpenPort = GeneratedPort,
    dtype: torch.dtype = torch.float32,
    catalogue: Sequence[Fault] = (),
    level: Level | None = None,
) -> GateResult:
    """Holds a port of a spec, with the weights in `folder`, against transformers, in a `dtype`.

    `step` is told what is about to run. `text` is a text file to compare losses on. `open_port` makes the port, by
    default the generated module. Mistakes of the `catalogue` say whether the gate would have seen them, where the port
    passes, and explain the port, where it fails. Raises IncompleteError where the verdict cannot be reached; a port
    that is wrong is a result, not an error.
    """
    architecture, level = compiled.architecture, level or Level()
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
        architecture.name,
        fingerprint(compiled),
        manifest,
        config,
        dequantised=checkpoint.method,
        dtype=dtype,
        quick=level.quick,
    )
    if manifest.passed:
        result.gains = doubtful_gains(architecture, checkpoint.tensors) if knows_tensors(architecture) else ()
        tokens = None if text is None or level.quick else read_tokens(architecture, folder, text)
        tokens = tokens and tokens.first(BESIDE)
        if checkpoint.method:
            step(f"dequantise {checkpoint.method}")
        result.stream = level.streaming.of(checkpoint.tensors, open_port, dtype)
        with checkpoint.plain() as plain:
            if result.stream is not None:
                run_streamed(compiled, plain, step, level.streaming.say, result)
                return _measured(result, start)
            opened = opener_of(open_port, checkpoint, plain)
            opened = partial(GeneratedPort, dtype=dtype) if opened is GeneratedPort else opened
            _run_probes(compiled, plain, tokens, step, opened, () if level.quick else catalogue, result)
    return _measured(result, start)


def _measured(result: GateResult, start: float) -> GateResult:
    result.seconds["total"] = time.perf_counter() - start
    result.peak_memory_bytes = _peak_memory_bytes()
    return result


def _run_probes(
    compiled: Compiled,
    folder: Path,
    tokens: Tokens | None,
    step: Step,
    open_port: OpenPort,
    catalogue: Sequence[Fault],
    result: GateResult,
) -> None:
    architecture = compiled.architecture
    clock = _Clock(result.seconds)
    step("load the reference")
    reference = Reference(folder, architecture=architecture, dtype=result.dtype)
    result.reference_version = reference.version
    if knows_tensors(architecture):
        require_all_read(architecture, reference.unread, folder, result.manifest)
    else:
        result.blind.append(Blind("tensors", f"where the family {architecture.family} stores them is not known"))
    step("load the port")
    port = open_port(architecture, folder)
    result.port_kind, result.port_name = port.kind, port.name
    clock.lap("load")

    derived, blind, wall = probes_for(architecture, reference, None if result.quick else known_tokens(folder))
    result.planned = len(derived)
    derived, left_out = quick_probes(derived) if result.quick else (derived, [])
    if isinstance(port, Batching):
        step("port: all probes")
        further = further_inputs(architecture, derived, quick=result.quick)
        port.prepare([*derived, *further, *([text_probe(tokens)] if tokens else [])])
        clock.lap("port")
    probes, unseen = _feasible(derived, reference, port, steps_differ=length_matters(architecture))
    result.blind += blind + left_out + unseen
    baselines, result.floor_runs = measure(reference, probes, step, quick=result.quick)
    result.disagreement = disagreement_of(reference, baselines)
    result.steps_against_whole = reference.steps_are_whole
    clock.lap("reference")

    logits: dict[str, Tensor] = {}
    for baseline in baselines:
        step(f"port: {baseline.probe.name}")
        logits[baseline.probe.name] = port.logits(baseline.probe)
        result.probes.append(judge(reference, baseline, logits[baseline.probe.name]))
    step("invariants")
    _check_invariants(architecture, Judged(reference, port, baselines, logits), wall, result)
    _try_rearranged(compiled, folder, open_port, Judged(reference, port, baselines, logits), result, step)
    if contradicts_itself(architecture, result.disagreement):
        hold_steps_against_whole(reference, result.probes, baselines, logits, step)
        result.steps_against_whole = reference.steps_are_whole
    result.blind += leave_padding_to_the_invariant(reference, port, result.probes, logits)
    inside = look_inside(architecture, reference, port, result.probes, step)
    result.divergence, result.divergence_note, result.blockwise = inside.divergence, inside.note, inside.blockwise
    if tokens is not None:
        step("loss on a text")
        result.text = text_loss(reference, port, tokens)
    clock.lap("port")
    if catalogue:
        judged = Judged(reference, port, baselines, logits, frozenset(one.field for one in blind))
        _try_mistakes(compiled, folder, open_port, judged, catalogue, result, step)
        clock.lap("faults")


def probes_for(
    architecture: Architecture, reference: Reference, known: int | None = None
) -> tuple[list[Probe], list[Blind], int | None]:
    """The probes of an Architecture beside its reference, what they cannot see, and how many positions there are."""
    wall = architecture.embedding.positions or reference.wall(architecture.context, LONGEST)
    return *derive_probes(architecture, avoid=reference.padding, wall=wall, known=known), wall


def quick_probes(probes: Sequence[Probe]) -> tuple[list[Probe], list[Blind]]:
    """The probes of the quick level, short prompts, and what it leaves out beside the others."""
    kept = [probe for probe in probes if is_prompt(probe)]
    left_out = [probe.name for probe in probes if not is_prompt(probe)]
    left_out += [UNUSED, "invariants but that of the cache", "other weights"]
    return kept, [Blind("quick", f"it leaves out {', '.join(left_out)}, and what mistakes would have been seen")]


def _check_invariants(architecture: Architecture, judged: Judged, wall: int | None, result: GateResult) -> None:
    """Adds what must hold whatever the reference says."""
    reference, port, logits = judged.reference, judged.port, judged.logits
    found, unasked = check_invariants(architecture, reference, port, result.probes, logits, wall, quick=result.quick)
    result.invariants += found
    result.blind += unasked


def _try_rearranged(
    compiled: Compiled,
    folder: Path,
    open_port: OpenPort,
    judged: Judged,
    result: GateResult,
    step: Step,
) -> None:
    """Adds the invariants that need other weights, tried on a typical probe."""
    typical = typical_of(result.probes)
    if typical is not None and knows_tensors(compiled.architecture) and not result.quick:
        step("rearranged weights")
        own = judged.logits[typical.probe.name]
        spec, reference = compiled.loaded.spec, judged.reference
        more, unasked = check_rearranged(spec, folder, open_port, reference, typical, judged.port, own)
        result.invariants += more
        result.blind += unasked


def _try_mistakes(
    compiled: Compiled,
    folder: Path,
    open_port: OpenPort,
    judged: Judged,
    catalogue: Sequence[Fault],
    result: GateResult,
    step: Step,
) -> None:
    """Adds which mistakes would have been seen, or what explains a port that fails."""
    found = look_for_faults(compiled, folder, judged, open_port, catalogue, step, passed=result.port_holds)
    result.probes += found.probes
    result.planned += len(found.probes)
    result.blind += found.blind
    result.observed, result.adequacy, result.diagnosis = found.observed, found.adequacy, found.diagnosis


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
