"""Ports: what is held against the reference. The default one is the module that archc generates."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from importlib.abc import InspectLoader
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn

from archc.architecture.model import Architecture
from archc.codegen import generate
from archc.collection import uncollected
from archc.errors import IncompleteError
from archc.validation.choices import Watch
from archc.validation.places import Places, find_places
from archc.validation.probes import Probe
from archc.validation.tracing import Trace, trace


class Port(Protocol):
    """Anything that turns a probe into logits."""

    kind: str
    name: str
    reloads: bool
    """Whether it can be opened on another checkpoint folder, and then computes with those weights."""

    def refusal(self, probe: Probe) -> str | None:
        """Why it cannot run a probe; None where it can."""

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe, through the port's cache if it comes in chunks."""

    def points(self, probe: Probe) -> dict[str, Tensor] | None:
        """Activations at the canonical points, or None for a port that cannot be traced."""


OpenPort: TypeAlias = Callable[[Architecture, Path], Port]
"""What makes a port of an Architecture with the weights in a folder."""


@runtime_checkable
class Batching(Protocol):
    """A port that is better told beforehand which probes it will be asked for."""

    def prepare(self, probes: Sequence[Probe]) -> None:
        """Runs them all at once. Others may be asked for all the same."""


@runtime_checkable
class Traceable(Protocol):
    """A port whose layers can be fed with what the reference gave its own."""

    @property
    def places(self) -> Places:
        """Where its canonical points are."""

    @property
    def module(self) -> nn.Module:
        """What holds its weights."""

    def trace(self, probe: Probe, fed: Mapping[str, Tensor] | None = None, watch: Watch | None = None) -> Trace | None:
        """A probe run in one piece, as `tracing.trace` says; None of a port that turns out to have no modules."""


class GeneratedPort:
    """The generated module of an Architecture, with the weights of a checkpoint folder."""

    kind = "generated"
    reloads = True

    def __init__(self, architecture: Architecture, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.name = f"generated from {architecture.name}"
        module = import_source(generate(architecture))
        try:
            with uncollected():
                self.model: Any = module.Model.from_pretrained(folder, dtype)
        except (ValueError, OSError) as error:
            raise IncompleteError(f"the generated module cannot load {folder}: {error}", "check the spec") from error
        self._architecture = architecture

    @classmethod
    def of(cls, model: Any, name: str, architecture: Architecture) -> Self:
        """A port of a generated module that has been loaded."""
        port = cls.__new__(cls)
        port.model, port.name, port._architecture = model, name, architecture
        return port

    @cached_property
    def places(self) -> Places:
        """Where its canonical points are."""
        return find_places(self.model, self._architecture)

    @property
    def module(self) -> nn.Module:
        """The generated module."""
        found: nn.Module = self.model
        return found

    def refusal(self, probe: Probe) -> str | None:
        """It can run every probe."""
        del probe
        return None

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe."""
        return torch.cat(list(self.stream(probe)), dim=1)

    def stream(self, probe: Probe) -> Iterator[Tensor]:
        """Logits of a probe piece by piece, [batch, n, vocab] each."""
        if probe.chunks is None:
            yield self._call(probe.input_ids, probe.position_ids, probe.attention_mask)
            return
        cache = self.model.new_cache(len(probe.input_ids), sum(probe.chunks))
        for piece in probe.steps():
            yield self._call(piece.input_ids, piece.position_ids, piece.attention_mask, cache)

    def _call(self, *inputs: Any) -> Tensor:
        with torch.no_grad():
            logits: Tensor = self.model(*inputs)
        return logits

    def points(self, probe: Probe) -> dict[str, Tensor]:
        """Activations at the canonical points."""
        return self.trace(probe).points

    def points_until(self, probe: Probe, layer: int) -> dict[str, Tensor]:
        """The same up to the end of a layer, with which the run ends."""
        batch, tokens = probe.input_ids.shape
        return trace(lambda: self.logits(probe), self.places, (batch, tokens), None, layer).points

    def trace(self, probe: Probe, fed: Mapping[str, Tensor] | None = None, watch: Watch | None = None) -> Trace:
        """A probe run in one piece, its layers `fed` and its choices watched."""
        batch, tokens = probe.input_ids.shape
        if watch is not None:
            watch.begin(0, batch, tokens)
        with watch or nullcontext():
            return trace(lambda: self.logits(probe), self.places, (batch, tokens), fed)


class _Source(InspectLoader):
    """Loads a module from its source, which is in no file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """The source."""
        del fullname
        return self._source


def import_source(source: str) -> Any:
    """A module from generated source. Nothing of it is on disk."""
    loader = _Source(source)
    spec = importlib.util.spec_from_loader("archc_generated_model", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
