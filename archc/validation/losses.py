"""The loss of every token of a passage, of the reference and of a port, each through its cache if it has one.

Both sides decode in chunks, so no length needs the square of it, and only one chunk's logits are held at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.architecture.model import Architecture
from archc.validation.ports import Port
from archc.validation.probes import Probe, length_matters
from archc.validation.reference import Reference

CHUNK = 256
"""Tokens that go through the cache at once."""
_ROWS_AT_ONCE = 64
_TRIED = (8, 8, 8)
"""Chunks that show whether a side can decode."""

Passage = tuple[int, ...]
"""Token ids; the last is only predicted."""
Done = Callable[[int], None]
"""Is told of tokens that have gone through a model."""


@runtime_checkable
class _Streaming(Protocol):
    def stream(self, probe: Probe) -> Iterator[Tensor]:
        """Logits piece by piece."""


class Sides:
    """Reference and port, each through its cache if it has one."""

    def __init__(self, architecture: Architecture, reference: Reference, port: Port) -> None:
        self._reference, self._port = reference, port
        self.notes: list[str] = []
        probe = _probe_of_chunks(_TRIED)
        if sum(_TRIED) > (architecture.embedding.positions or architecture.context):
            probe = _probe_of_chunks((1, 1))
        refusal = port.refusal(probe)
        reference.steps_are_whole = not reference.can_step(probe)
        self.port_steps, self.reference_steps = refusal is None, not reference.steps_are_whole
        if refusal is not None:
            self.notes.append(f"the port was run in one full pass: {refusal}")
        if reference.steps_are_whole:
            self.notes.append("the reference was run in one full pass: it cannot decode in chunks")
        if self.port_steps != self.reference_steps and length_matters(architecture):
            self.notes = [f"{self.notes[0]}; so was the other side, as rotations depend on the length of the input"]
            self.port_steps, self.reference_steps, reference.steps_are_whole = False, False, True
        self.chooses = bool(reference.run(probe).choices.calls)
        """Whether the model chooses experts or the like, which is not continuous."""

    def reference_losses(self, ids: Passage, done: Done) -> Tensor:
        """The reference's loss at every position of a passage but the last."""
        return _losses(self._reference, _probe(ids, stepping=self.reference_steps), ids, done)

    def losses_within(self, trained: int, ids: Passage, opening: int, done: Done) -> Tensor:
        """The reference's losses past the `trained` length, on pieces that are no longer: not a number before it.

        Every piece begins half a trained length after the last one, and its second half counts, so that each token has
        at least so many before it.
        """
        length, half = len(ids) - 1, trained // 2
        found = torch.full((length,), math.nan).double()
        for start in range(half, length - half, half) if length > trained > 1 else ():
            piece = (*ids[:opening], *ids[start + opening : start + trained + 1])
            losses = self.reference_losses(piece, done)
            found[start + half : start + trained] = losses[half:]
        found[:trained] = math.nan
        return found

    def port_losses(self, ids: Passage, done: Done) -> Tensor:
        """The port's."""
        return _losses(self._port, _probe(ids, stepping=self.port_steps), ids, done)

    def whole_losses(self, ids: Passage) -> Tensor:
        """The reference's in one full pass."""
        return _losses(self._reference, _probe(ids, stepping=False), ids)


def _probe_of_chunks(chunks: tuple[int, ...]) -> Probe:
    return Probe("a text", "whether it can be decoded", torch.zeros((1, sum(chunks)), dtype=torch.long), chunks=chunks)


def _probe(ids: Passage, *, stepping: bool) -> Probe:
    """All tokens of a passage but the last, which is only predicted."""
    given = torch.tensor([ids[:-1]])
    chunks = tuple(min(CHUNK, len(ids) - 1 - start) for start in range(0, len(ids) - 1, CHUNK))
    return Probe("a text", "loss by position", given, chunks=chunks if stepping else None)


def _losses(side: Reference | Port, probe: Probe, ids: Passage, done: Done = lambda _: None) -> Tensor:
    """Losses [tokens] in nats, in fp64; infinite where there are no logits, or none that fit."""
    targets = torch.tensor(ids[1:])
    found = torch.full((len(targets),), math.inf).double()
    whole = probe.chunks is None or not isinstance(side, _Streaming)
    sizes = (len(targets),) if whole else probe.chunks or ()
    pieces = side.stream(probe) if isinstance(side, _Streaming) else iter([side.logits(probe)])
    at = 0
    for size, logits in zip(sizes, pieces, strict=False):
        wanted = targets[at : at + size]
        if logits.ndim == 3 and logits.shape[1] == size and int(wanted.max()) < logits.shape[-1]:
            found[at : at + size] = _cross_entropy(logits[0], wanted).nan_to_num(nan=math.inf)
        at += size
        done(size)
    return found


def _cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Losses [tokens] of logits [tokens, vocab], in fp64, a few rows at a time."""
    starts = range(0, len(wanted), _ROWS_AT_ONCE)
    parts = ((logits[n : n + _ROWS_AT_ONCE].double(), wanted[n : n + _ROWS_AT_ONCE]) for n in starts)
    return torch.cat([F.cross_entropy(rows, ids, reduction="none") for rows, ids in parts])
