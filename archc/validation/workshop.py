"""The workshop: ports with planted mistakes, made from one loaded copy of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace as altered
from torch import Tensor

from archc.architecture.model import Architecture
from archc.codegen import UngeneratedError, generate
from archc.errors import ArchcError
from archc.faults.base import Fault, Faulty, Layers, Slip
from archc.faults.catalogue import CATALOGUE
from archc.validation.ports import GeneratedPort, import_source


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


def mutants_of(architecture: Architecture, catalogue: tuple[Fault, ...] = CATALOGUE) -> list[Mutant]:
    """Every mistake of the catalogue that a model can have."""
    return [Mutant(fault, slip) for fault in catalogue for slip in fault.slips(architecture)]


@dataclass(frozen=True, slots=True)
class Unmade:
    """Why there is no port with a mistake."""

    why: str
    loud: bool
    """Whether the mistake shows when weights are loaded, as a name or a shape that does not fit."""


class Workshop:
    """Makes ports of an Architecture, correct or not, whose weights are those in `folder`, loaded once.

    A port whose mistake leaves tensors unread ignores them, as ports do; one that lacks a tensor, or finds it in
    another shape, is not made.
    """

    def __init__(self, architecture: Architecture, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.clean = Faulty(architecture)
        self._weights: Mapping[str, Tensor] = GeneratedPort(architecture, folder).model.to(dtype).state_dict()
        self._source = generate(_nameless(architecture))

    def make(self, *mutants: Mutant, dtype: torch.dtype | None = None) -> GeneratedPort | Unmade:
        """The port with these mistakes, in another type if asked for."""
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
        return _loaded(source, weights, " and ".join(mutant.name for mutant in mutants), dtype)


def _nameless(architecture: Architecture) -> Architecture:
    """Without a family, whose storage has no place for some designs: here, weights come by their own names."""
    return altered(architecture, family=None)


def _loaded(source: str, weights: Mapping[str, Tensor], name: str, dtype: torch.dtype | None) -> GeneratedPort | Unmade:
    with torch.device("meta"):
        model: Any = import_source(source).Model()
    wanted = model.state_dict()
    if missing := [key for key in wanted if key not in weights]:
        return Unmade(f"it needs {missing[0]}, which the checkpoint does not hold", loud=True)
    if misfit := [key for key in wanted if wanted[key].shape != weights[key].shape]:
        shapes = f"{list(wanted[misfit[0]].shape)}, stored {list(weights[misfit[0]].shape)}"
        return Unmade(f"it needs {misfit[0]} as {shapes}", loud=True)
    model.load_state_dict({key: weights[key] for key in wanted}, assign=True)
    return GeneratedPort.of(model.to(dtype).eval() if dtype else model.eval(), name)
