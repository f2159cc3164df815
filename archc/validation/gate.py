"""The gate: static check, reference and floor, port, verdict. One function, `run_gate`, in that order."""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from archc.architecture import Architecture, Compiled
from archc.checkpoints.headers import read_checkpoint, read_config
from archc.parts.experts import Experts
from archc.validation.divergence import Divergence, first_divergence
from archc.validation.invariants import Invariant, check_invariants
from archc.validation.parity import Baseline, FloorRun, ProbeResult, judge, measure
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Blind, derive_probes
from archc.validation.reference import Reference
from archc.validation.static import ManifestResult, compare_manifest
from archc.validation.text import TextLoss, text_loss

Step = Callable[[str], None]


@dataclass
class GateResult:
    """Everything that a run of the gate found. Seconds are wall-clock, memory is the process's peak in bytes."""

    spec_name: str
    spec_sha256: str
    port_name: str
    port_kind: str
    manifest: ManifestResult
    reference_version: str = ""
    probes: list[ProbeResult] = field(default_factory=list)
    floor_runs: list[FloorRun] = field(default_factory=list)
    disagreement: float | None = None
    blind: list[Blind] = field(default_factory=list)
    invariants: list[Invariant] = field(default_factory=list)
    divergence: Divergence | None = None
    text: TextLoss | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether everything that was tried holds, and something was."""
        probes_hold = bool(self.probes) and all(probe.passed for probe in self.probes)
        return self.manifest.passed and probes_hold and all(invariant.passed for invariant in self.invariants)


def run_gate(compiled: Compiled, folder: Path, text: Path, step: Step) -> GateResult:
    """Holds the generated module of a spec, with the weights in `folder`, against transformers.

    `step` is told what is about to run. Raises IncompleteError where the verdict cannot be reached;
    a port that is wrong is a result, not an error.
    """
    architecture = compiled.architecture
    start = time.perf_counter()
    step("checkpoint headers")
    read_config(folder)
    manifest = compare_manifest(architecture, read_checkpoint(folder))
    result = GateResult(
        spec_name=architecture.name,
        spec_sha256=hashlib.sha256(repr(architecture).encode()).hexdigest(),
        port_name=f"generated from {architecture.name}",
        port_kind=GeneratedPort.kind,
        manifest=manifest,
    )
    if manifest.passed:
        _run_probes(architecture, folder, text, step, result)
    result.seconds["total"] = time.perf_counter() - start
    return result


def _run_probes(architecture: Architecture, folder: Path, text: Path, step: Step, result: GateResult) -> None:
    clock = _Clock(result.seconds)
    step("load the reference")
    reference = Reference(folder)
    result.reference_version = reference.version
    step("load the port")
    port = GeneratedPort(architecture, folder)
    clock.lap("load")

    probes, result.blind = derive_probes(architecture)
    routed = any(isinstance(layer.ffn, Experts) for layer in architecture.layers)
    baselines, result.floor_runs = measure(reference, probes, routed, step)
    result.disagreement = _disagreement(reference, baselines)
    clock.lap("reference")

    logits: dict[str, Tensor] = {}
    for baseline in baselines:
        step(f"port: {baseline.probe.name}")
        logits[baseline.probe.name] = port.logits(baseline.probe)
        result.probes.append(judge(baseline, logits[baseline.probe.name]))
    step("invariants")
    result.invariants = check_invariants(architecture, reference, port, baselines, logits)
    failed = [one for one in result.probes if not one.passed]
    if failed:
        step("first divergence")
        whole = [one.probe for one in failed if one.probe.chunks is None]
        result.divergence = first_divergence(reference, port, whole[0]) if whole else None
    step("loss on a text")
    limit = architecture.embedding.positions or 2**62
    result.text = text_loss(reference, port, folder, text, limit)
    clock.lap("port")


def _disagreement(reference: Reference, baselines: list[Baseline]) -> float | None:
    """How far the reference's own cached run is from its own full pass, in floors; None without such a probe."""
    for baseline in baselines:
        if baseline.probe.chunks is not None:
            whole = reference.logits(replace(baseline.probe, chunks=None))
            return judge(baseline, whole).times_floor
    return None


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self.last
        self.last = now


def peak_memory_bytes() -> int:
    """The most memory that the process has held, in bytes (Linux counts in KiB, macOS in bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
