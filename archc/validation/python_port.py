"""A port that is Python code of the user's: `package.module:name` or `path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from archc.errors import ArchcError, IncompleteError, UsageError
from archc.validation.calling import signature_of
from archc.validation.choices import Watch
from archc.validation.places import Places, find_places
from archc.validation.probes import Probe
from archc.validation.tracing import Trace, trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from archc.architecture.model import Architecture

Factory = Callable[[Path, torch.dtype], Any]
_SHOWN_LINES = 3


def find_factory(place: str) -> Factory:
    """The function that `place` names. Raises UsageError where there is none, IncompleteError where its code fails."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name.isidentifier():
        raise UsageError(f"{place!r} names no port", "write package.module:name or path/to/file.py:name")
    module = _from_file(Path(where)) if where.endswith(".py") else _from_package(where)
    factory = getattr(module, name, None)
    if not callable(factory):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UsageError(f"{where} has no function {name}", f"it has {', '.join(sorted(known)[:10]) or 'none'}")
    found: Factory = factory
    return found


class PythonPort:
    """What the user's function returned: called with input_ids, it gives logits or an object that has them.

    Probes that its signature has no argument for are not run on it, and said to be unseen. A cache is what its output
    hands back or, of a port with `new_cache(batch, max_length)`, one that is written in place. A module is traced, as
    far as its layers are found.
    """

    kind = "python"
    reloads = True

    def __init__(
        self,
        place: str,
        factory: Factory,
        folder: Path,
        architecture: Architecture | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.name = place
        with self._blamed("make"):
            self._model: Any = factory(folder, dtype)
        plain = getattr(self._model, "_orig_mod", self._model)  # what torch.compile has wrapped
        function = plain.forward if isinstance(plain, torch.nn.Module) else plain
        if not callable(function):
            raise IncompleteError(f"the port {place} is a {type(function).__name__}", "return something to call")
        self._signature = signature_of(function, lambda ids, **more: self._call(ids, more))
        self._new_cache: Callable[[int, int], Any] | None = getattr(plain, "new_cache", None)
        if self._new_cache is not None and "cache" in self._signature.takes:
            self._signature = replace(self._signature, cache="cache")
        self.module = plain if isinstance(plain, torch.nn.Module) else torch.nn.Module()
        self.places = find_places(self.module, architecture) if architecture else Places()

    @property
    def packs(self) -> bool:
        """Whether it means to read restarting positions as several documents: transformers' models do."""
        return self._is_transformers

    def refusal(self, probe: Probe) -> str | None:
        """Why it cannot run a probe; None where it can."""
        return self._signature.refusal(probe)

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe, in fp32."""
        return torch.cat(list(self.stream(probe)), dim=1)

    def stream(self, probe: Probe) -> Iterator[Tensor]:
        """Logits of a probe piece by piece, [batch, n, vocab] each, in fp32.

        A prompt of one token goes before, so that nothing is left of earlier probes: some rotary tables of transformers
        remember the longest input so far, until a short one comes by.
        """
        self._call(torch.zeros_like(probe.input_ids[:1, :1]), {})
        if probe.chunks is None:
            yield self._logits(self._call(probe.input_ids, self._signature.inputs(probe) | self._cached(False)), probe)
            return
        cache = self._signature.cache
        assert cache is not None  # asked before, by `refusal`
        state = self._new_cache(len(probe.input_ids), sum(probe.chunks)) if self._new_cache else None
        for piece in probe.steps():
            more = self._signature.inputs(piece) | self._cached(True) | ({} if state is None else {cache: state})
            output = self._call(piece.input_ids, more)
            state = getattr(output, cache, state)
            yield self._logits(output, probe)

    def points(self, probe: Probe) -> dict[str, Tensor] | None:
        """Activations at the canonical points of a module; None of anything else."""
        found = self.trace(probe)
        return None if found is None else found.points

    def trace(self, probe: Probe, fed: Mapping[str, Tensor] | None = None, watch: Watch | None = None) -> Trace | None:
        """A probe run in one piece, its layers `fed` and its choices watched; None where it has no layers to see."""
        if not self.places.layers:
            return None
        batch, tokens = probe.input_ids.shape
        more = self._signature.inputs(probe) | self._cached(False)
        if watch is not None:
            watch.begin(0, batch, tokens)

        def run() -> Tensor:
            with torch.no_grad(), self._blamed("run"):
                return self._logits(self.module(probe.input_ids, **more), probe)

        with watch or nullcontext():
            return trace(run, self.places, (batch, tokens), fed)

    def _cached(self, use_cache: bool) -> dict[str, Any]:
        """Whether a cache is wanted: with one, transformers takes a row for a single text."""
        return {"use_cache": use_cache} if "use_cache" in self._signature.takes else {}

    @property
    def _is_transformers(self) -> bool:
        from transformers import PreTrainedModel

        return isinstance(self._model, PreTrainedModel)

    def _call(self, ids: Tensor, more: dict[str, Any]) -> Any:
        with torch.no_grad(), self._blamed("run"):
            return self._model(ids, **more)

    def _logits(self, output: Any, probe: Probe) -> Tensor:
        found = getattr(output, "logits", output)
        if not isinstance(found, Tensor) or found.ndim != 3:
            raise IncompleteError(
                f"the port {self.name} returns no logits [batch, tokens, vocab] for the probe {probe.name}",
                "return a tensor, or an object with .logits",
            )
        return found.float()

    @contextmanager
    def _blamed(self, deed: str) -> Iterator[None]:
        """Says whose code it was that failed."""
        with _blamed(f"the port {self.name} cannot {deed}"):
            yield


def open_python_port(place: str, dtype: torch.dtype | None = None) -> Callable[[Architecture, Path], PythonPort]:
    """What opens the port at `place` for the gate."""
    factory = find_factory(place)
    return lambda architecture, folder: PythonPort(place, factory, folder, architecture, dtype or torch.float32)


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", "name the file of the port")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # where its dataclasses look for their module
    with _blamed(f"{path} cannot be imported"):
        _look_in(path.parent)
        spec.loader.exec_module(module)
    return module


def _from_package(name: str) -> Any:
    with _blamed(f"{name} cannot be imported"):
        _look_in(Path.cwd())
        return importlib.import_module(name)


def _look_in(folder: Path) -> None:
    """Lets a port's code import what lies beside it, now and later, as it can where it is run itself."""
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    try:
        yield
    except (ArchcError, MemoryError):
        raise
    except Exception as error:  # the user's code may raise anything
        first, *rest = [line.strip()[:200] for line in str(error).strip().splitlines()] or [""]
        text = f"{type(error).__name__}: {first}".rstrip(": ")
        detail = "\n".join([*rest[:_SHOWN_LINES], *_line_of(error)])
        raise IncompleteError(f"{what}: {text}", "mend the port", detail) from error


def _line_of(error: Exception) -> list[str]:
    """The innermost line of the user's own code that an error went through."""
    installed = (str(Path(__file__).parents[1]), *site.getsitepackages(), sysconfig.get_paths()["stdlib"], "<")
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(installed)]
    return [f"{Path(one.filename).name}:{one.lineno}, in {one.name}: {one.line}" for one in frames[-1:]]
