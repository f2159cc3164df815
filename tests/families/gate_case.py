"""One case of the zoo through everything: its config.json imported, its module generated, and the gate, clean and not.

Nothing is written by hand for a case: the checkpoint is Hugging Face's, the spec is what `archc import` makes of it.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from archc.architecture import Compiled, compile_text
from archc.architecture.model import Architecture
from archc.codegen import UngeneratedError, refuse_ungenerated
from archc.errors import ArchcError
from archc.importing.convert import import_spec
from archc.validation.gate import GateResult, run_gate
from archc.validation.ports import GeneratedPort
from tests.codegen.comparisons import as_stored
from tests.families.ugly import save, uglier
from tests.families.zoo_case import Case

GRADIENT_BOUND = 1e-4
"""How far a gradient may be from Hugging Face's, relative to the largest of its tensor: backward passes add in another
order. A matrix that is wrong by a thousandth is ten times beyond."""


@dataclass
class Outcome:
    """What became of a case. Figures are the worst deviation of their probes, in noise floors: at most 8 passes."""

    case: str
    model_type: str
    passed: bool = False
    refused: tuple[str, ...] = ()
    """By what fields and for what reasons it is sized alone."""
    failure: str = ""
    full_pass: float | None = None
    cache: float | None = None
    padded: float | None = None
    planted: float | None = None
    gradients: float | None = None
    seconds: float = 0.0
    options: tuple[str, ...] = ()
    """Keys of the config that the spec was read from."""


class NudgedPort(GeneratedPort):
    """The generated module, with every other row of one matrix in its middle a thousandth too large."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        super().__init__(architecture, folder)
        inner = [p for name, p in self.model.named_parameters() if name.startswith("layers.") and p.ndim == 2]
        with torch.no_grad():
            inner[len(inner) // 2][::2] *= 1.001


def check(case: Case, *, thoroughly: bool) -> Outcome:
    """Runs a case; `thoroughly` adds a planted mistake and the gradients. Nothing is raised: a failure is a result."""
    start = time.perf_counter()
    outcome = Outcome(case.name, case.model_type)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _check(uglier(case), Path(name), outcome, thoroughly=thoroughly)
        except UngeneratedError as error:
            outcome.refused = error.reasons
        except ArchcError as error:
            outcome.failure = str(error)
        except Exception as error:  # the case is named, and the others go on
            outcome.failure = f"{type(error).__name__}: {str(error)[:300]}"
    outcome.seconds = time.perf_counter() - start
    return outcome


def _check(case: Case, folder: Path, outcome: Outcome, *, thoroughly: bool) -> None:
    hf = save(case, folder)
    imported = import_spec(str(folder))
    outcome.options = tuple(dict.fromkeys(key for _, leaf in imported.values for key in leaf.keys))
    compiled = compile_text(imported.text, case.name)
    refuse_ungenerated(compiled.architecture)
    result = _gate(compiled, folder, GeneratedPort)
    _read(result, outcome)
    if thoroughly:
        wrong = _gate(compiled, folder, NudgedPort)
        outcome.planted = _worst(wrong, "")
        outcome.gradients = _gradients(hf, GeneratedPort(compiled.architecture, folder).model, compiled.architecture)
        if wrong.passed:
            outcome.failure += " the planted mistake passes"
        if not outcome.gradients <= GRADIENT_BOUND:
            outcome.failure += f" gradients differ by {outcome.gradients:.1e}"
    outcome.passed = result.passed and not outcome.failure


def _gate(compiled: Compiled, folder: Path, port: type[GeneratedPort]) -> GateResult:
    return run_gate(compiled, folder, lambda _step: None, open_port=port)


def _read(result: GateResult, outcome: Outcome) -> None:
    outcome.full_pass = _worst(result, "tokens", "positions", "context")
    outcome.cache = _worst(result, "cache")
    outcome.padded = _worst(result, "batch")
    if not result.manifest.passed:
        found = result.manifest
        outcome.failure = (
            f"missing {found.missing[:3]}, unexpected {found.unexpected[:3]}, misshapen {found.wrong_shape[:3]}"
        )
    broken = [f"{one.name} ({one.figure:.3g}; {one.detail})" for one in result.invariants if not one.passed]
    beyond = [f"{one.probe.name} {one.times_floor:.3g}" for one in result.probes if not one.passed]
    if broken or beyond:
        where = "" if result.divergence is None else f"; first at {result.divergence.point}"
        outcome.failure = f"beyond the floor: {', '.join(beyond)}{where}; broken: {', '.join(broken)}"


def _worst(result: GateResult, *endings: str) -> float | None:
    found = [one.times_floor for one in result.probes if not endings or one.probe.name.endswith(endings)]
    return max(found, default=None)


def _gradients(hf: Any, port: Any, architecture: Architecture) -> float:
    """The largest difference of a gradient, relative to the largest of its tensor.

    The loss is worked out here, from either side's logits: some classes of transformers do not shift their labels.
    """
    ids = torch.randint(20, 180, (2, 24), generator=torch.Generator().manual_seed(3))
    theirs = _stored(_backward(hf, hf(ids).logits, ids))
    filled = {name: parameter.data for name, parameter in _backward(port, port(ids), ids).named_parameters()}
    ours = as_stored(filled | dict(port.named_buffers()), architecture)
    largest = max(float(gradient.abs().max()) for gradient in theirs.values() if gradient.numel())
    return max(_apart(ours[name], theirs[name], largest) for name in ours)


def _backward(model: Any, logits: Tensor, ids: Tensor) -> Any:
    """The model with the gradients of its loss in place of its parameters."""
    torch.autograd.backward(F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()))
    for parameter in model.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return model


def _stored(model: Any) -> dict[str, Tensor]:
    """What a checkpoint of a model holds."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder, "model.safetensors"))


def _apart(ours: Tensor, theirs: Tensor, largest: float) -> float:
    """Relative to the tensor's own, but for what is nothing beside the largest: biases of keys that change nothing."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-2 * largest))
