"""The workshop: ports with planted mistakes, made from one loaded copy of the weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from msgspec.structs import replace as altered
from torch import Tensor, nn

from archc.architecture.model import Architecture
from archc.codegen import UngeneratedError, generate
from archc.collection import uncollected
from archc.errors import ArchcError
from archc.faults.base import Fault, Faulty, Layers, Slip
from archc.faults.catalogue import CATALOGUE
from archc.validation.ports import GeneratedPort, import_source
from archc.validation.probes import Probe

_IN_DOUBLE = re.compile(r"(?<=torch\.float)32\b")
"""What a module works out in 32 bits whatever its type, so that in 64 bits all of it is."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake that the model at hand can have, everywhere or in some layers."""

    fault: Fault
    slip: Slip
    layers: Layers = None

    @property
    def name(self) -> str:
        """The field and its wrong value."""
        return f"{self.fault.id} = {self.slip.behaves_as}"

    def plant(self, faulty: Faulty) -> Faulty:
        """With this mistake, beside those that are there."""
        return self.slip.change(faulty, self.layers)


def mutants_of(architecture: Architecture, catalogue: Sequence[Fault] = CATALOGUE) -> list[Mutant]:
    """Every mistake of the catalogue that a model can have."""
    return [Mutant(fault, slip) for fault in catalogue for slip in fault.slips(architecture)]


@dataclass(frozen=True, slots=True)
class Unmade:
    """Why there is no port with a mistake."""

    why: str
    loud: bool
    """Whether the mistake shows when weights are loaded, as a name or a shape that does not fit."""


class Workshop:
    """Makes ports of an Architecture, correct or not, which share the weights of a `correct` one.

    A port whose mistake leaves tensors unread ignores them, as ports do; one that lacks a tensor, or finds it in
    another shape, is not made.
    """

    def __init__(
        self, architecture: Architecture, correct: GeneratedPort, known: Mapping[str, Tensor] | None = None
    ) -> None:
        """`known` are logits that the correct port gave before, by the name of their probe."""
        self.clean = Faulty(architecture)
        self.correct = correct
        self._weights: Mapping[str, Tensor] = correct.model.state_dict()
        self._source = generate(_nameless(architecture))
        self._in_type: dict[torch.dtype | None, GeneratedPort] = {None: correct}
        self._right: dict[tuple[str, torch.dtype | None], Tensor] = {
            (name, None): logits for name, logits in (known or {}).items()
        }

    def right(self, probe: Probe, dtype: torch.dtype | None = None) -> Tensor:
        """Logits of the correct port on a probe, in another type if asked for; each is worked out once."""
        if dtype not in self._in_type:
            port = self.make(dtype=dtype)
            assert isinstance(port, GeneratedPort)
            self._in_type[dtype] = port
        if (probe.name, dtype) not in self._right:
            self._right[probe.name, dtype] = self._in_type[dtype].logits(probe)
        return self._right[probe.name, dtype]

    def make(self, *mutants: Mutant, dtype: torch.dtype | None = None) -> GeneratedPort | Unmade:
        """The port with these mistakes, in another type if asked for; in 64 bits, nothing is worked out in fewer."""
        faulty = self.clean
        for mutant in mutants:
            faulty = mutant.plant(faulty)
        if mutants and faulty == self.clean:
            return Unmade("the spec with it is the same spec", loud=False)
        try:
            source = generate(_nameless(faulty.architecture))
        except UngeneratedError as error:
            return Unmade(f"it cannot be generated: {'; '.join(error.reasons)}", loud=False)
        except ArchcError as error:
            return Unmade(f"it cannot be generated: {error}", loud=False)
        for edit in faulty.edits:
            edited = edit.apply(source)
            if edited is None:
                return Unmade("the generated code has no place for it", loud=False)
            source = edited
        weights = self._weights
        for change in faulty.weights:
            weights = change(weights)
        if mutants and source == self._source and weights is self._weights:
            return Unmade("the generated code with it is the same code", loud=False)
        if dtype == torch.float64:
            source = _IN_DOUBLE.sub("64", source.replace(".float()", ".double()"))
        return _loaded(source, weights, " and ".join(mutant.name for mutant in mutants), dtype, faulty.architecture)

    def idle(self, port: GeneratedPort) -> str | None:
        """Why what a port with a mistake leaves unread changes nothing; None where it may."""
        unread = [key for key in self._weights if key not in port.model.state_dict()]
        if unread and not any(self._weights[key].any() for key in unread):
            return f"what it leaves out is all zeros ({unread[0]})"
        return None


def _nameless(architecture: Architecture) -> Architecture:
    """Without a family, whose storage has no place for some designs: here, weights come by their own names."""
    return altered(architecture, family=None)


def _loaded(
    source: str, weights: Mapping[str, Tensor], name: str, dtype: torch.dtype | None, architecture: Architecture
) -> GeneratedPort | Unmade:
    made: Any = import_source(source).Model
    made.initialise = lambda _model: None  # fresh weights would be thrown away
    with torch.device("meta"), uncollected(), _without_fresh_weights():
        model: Any = made()
    wanted = model.state_dict()
    if missing := [key for key in wanted if key not in weights]:
        return Unmade(f"it needs {missing[0]}, which the checkpoint does not hold", loud=True)
    if misfit := [key for key in wanted if wanted[key].shape != weights[key].shape]:
        shapes = f"{list(wanted[misfit[0]].shape)}, stored {list(weights[misfit[0]].shape)}"
        return Unmade(f"it needs {misfit[0]} as {shapes}", loud=True)
    _share(model, weights)
    return GeneratedPort.of(model.to(dtype).eval() if dtype else model.eval(), name, architecture)


def _share(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Gives a model on the meta device these weights themselves, and no copies."""
    for path, module in model.named_modules():
        start = f"{path}." if path else ""
        for name, _ in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(weights[start + name], requires_grad=False))
        for name, _ in list(module.named_buffers(recurse=False)):
            if start + name in weights:
                setattr(module, name, weights[start + name])


@contextmanager
def _without_fresh_weights() -> Iterator[None]:
    """Layers are made without drawing weights, which takes most of the time even where there is nothing to fill."""
    kinds: tuple[Any, ...] = (nn.Linear, nn.Embedding, nn.Conv1d)
    own = [kind.reset_parameters for kind in kinds]
    for kind in kinds:
        kind.reset_parameters = lambda _layer: None
    try:
        yield
    finally:
        for kind, reset in zip(kinds, own, strict=True):
            kind.reset_parameters = reset
