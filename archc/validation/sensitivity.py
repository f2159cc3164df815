"""Sensitivity: what every mistake would cost on real weights and a text, and whether the gate would have seen it.

The generated model is read with each mistake in turn, nothing else changed. Some changes that are none (all positions
moved, the model in 16 bits) stand beside them, to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.architecture import Architecture, Compiled
from archc.codegen import refuse_ungenerated
from archc.errors import IncompleteError
from archc.faults.base import Fault
from archc.validation.adequacy import Adequacy
from archc.validation.faulting import Judged, look_for_faults
from archc.validation.parity import Baseline, Deviation, deviation, judge, measure
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe, derive_probes, length_matters, mixers
from archc.validation.reference import Reference
from archc.validation.text import Tokens, read_tokens
from archc.validation.workshop import Mutant, Workshop

_SHIFTS = (500, 5_000)


Gate: TypeAlias = Literal["killed", "loud", "equivalent", "survived"]
"""What the gate makes of a mistake: a probe shows it, loading does, it is none, or nothing shows it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a change does to a model on a text.

    `loss` is the mean cross-entropy in nats; deviations are from the reference's logits, `times_floor` in floors of
    the text.
    """

    loss: float
    deviation: Deviation
    times_floor: float


@dataclass(frozen=True, slots=True)
class Row:
    """A mistake, its cost (None where loading the weights raises), and what the gate makes of it."""

    mutant: Mutant
    cost: Cost | None
    gate: Gate
    probe: str
    """The probe that kills it, or shows it most."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """A change that is no mistake."""

    name: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The table, with the loss of the unchanged model."""

    tokens: Tokens
    reference_version: str
    loss: float
    rows: tuple[Row, ...]
    controls: tuple[Control, ...]

    @property
    def survived(self) -> list[Row]:
        """Mistakes that the gate would not see."""
        return [row for row in self.rows if row.gate == "survived"]


def sensitivity(
    compiled: Compiled, folder: Path, text: Path, catalogue: Sequence[Fault], step: Callable[[str, int, int], None]
) -> Sensitivity:
    """The cost of every mistake of the catalogue on a text, with the weights in `folder`.

    `step` is told what is about to run, how many mistakes have been tried and how many there are. Raises
    IncompleteError where the generated model is not the reference's: costs would be those of another model.
    """
    architecture = compiled.architecture
    refuse_ungenerated(architecture)
    tokens = read_tokens(architecture, folder, text)
    if tokens is None:
        raise IncompleteError(f"{folder} has no tokenizer.json", "a loss needs the checkpoint's own tokenizer")
    step("load", 0, 0)
    reference = Reference(folder, architecture=architecture)
    correct = GeneratedPort(architecture, folder)
    workshop = Workshop(architecture, correct)
    wall = architecture.embedding.positions or reference.wall(architecture.context, len(tokens.ids))
    probes, blind = derive_probes(architecture, avoid=reference.padding, wall=wall)
    probes = [probe for probe in probes if reference.refusal(probe) is None]
    on_text = Probe("text", "a text", torch.tensor([tokens.ids]))
    baselines, _ = measure(reference, [*probes, on_text], lambda name: step(name, 0, 0))
    *baselines, read = baselines
    right = judge(reference, read, correct.logits(on_text))
    if not right.passed:
        raise IncompleteError(
            f"the model of this spec is {right.times_floor:,.0f} floors from the reference on the text",
            "mend that first: `archc validate` says what differs",
        )
    judged = Judged(reference, correct, baselines, {}, frozenset(one.field for one in blind))
    gate = look_for_faults(
        compiled, folder, judged, GeneratedPort, catalogue, lambda name: step(name, 0, 0), passed=True
    )
    rows = tuple(_rows(gate.adequacy, workshop, read, step)) if gate.adequacy else ()
    controls = tuple(_controls(architecture, workshop, correct, read, wall))
    return Sensitivity(tokens, reference.version, _loss(read.logits, on_text), rows, controls)


def _rows(found: Adequacy, workshop: Workshop, read: Baseline, step: Callable[[str, int, int], None]) -> Iterator[Row]:
    """The mistakes, with what the gate makes of each, and what it costs on the text."""
    outcomes: list[tuple[Mutant, Gate, str, str]] = [
        *((one.mutant, "killed", one.probe, "") for one in found.killed),
        *((one.mutant, "survived", one.probe, "") for one in found.survived),
        *((one.mutant, "equivalent", "", one.why) for one in found.equivalent),
        *((one.mutant, "loud", "", one.why) for one in found.loud),
    ]
    for number, (mutant, gate, probe, why) in enumerate(outcomes):
        step(mutant.name, number, len(outcomes))
        port = workshop.make(mutant)
        cost = _cost(port.logits(read.probe), read) if isinstance(port, GeneratedPort) else None
        yield Row(mutant, cost, gate, probe, why)


def _controls(
    architecture: Architecture, workshop: Workshop, correct: GeneratedPort, read: Baseline, wall: int | None
) -> Iterator[Control]:
    """Positions that all move together, where only their distances count, and 16-bit arithmetic."""
    told_apart = {mixer.position_kind for mixer in mixers(architecture)}
    relative = told_apart <= {"rope", None} and architecture.embedding.table is None
    if relative and not length_matters(architecture) and wall is None:
        for shift in _SHIFTS:
            ids = read.probe.input_ids
            positions = torch.arange(ids.shape[1])[None] + shift
            moved = Probe("shifted", "", ids, positions, torch.ones_like(ids))
            yield Control(f"all positions + {shift:,}", _cost(correct.logits(moved), read))
    half = workshop.make(dtype=torch.bfloat16)
    assert isinstance(half, GeneratedPort)
    yield Control("the whole model in bfloat16", _cost(half.logits(read.probe).float(), read))


def _cost(logits: Tensor, read: Baseline) -> Cost:
    found = deviation(logits, read.logits, read.probe.real)
    return Cost(_loss(logits, read.probe), found, read.floor.times(found))


def _loss(logits: Tensor, probe: Probe) -> float:
    loss = float(F.cross_entropy(logits[0, :-1].double(), probe.input_ids[0, 1:]))
    return loss if math.isfinite(loss) else math.inf
