"""Probes: the inputs that a port and its reference are compared on, derived from the Architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from archc.architecture.model import Architecture

SEED = 20_240_917
LONGEST = 2048
_LONG = 512
_CHUNKS = (16, 1, 1, 1, 5, 11, 13)
_ROWS = (5, 17, 32)
_Ids = Callable[[int, int], Tensor]


@dataclass(frozen=True, slots=True)
class Probe:
    """An input, and why it is there.

    input_ids, position_ids and attention_mask are [batch, tokens]; `chunks` are the lengths of the
    pieces in which the input goes through the cache (None: all at once, without a cache).
    """

    name: str
    purpose: str
    input_ids: Tensor
    position_ids: Tensor | None = None
    attention_mask: Tensor | None = None
    chunks: tuple[int, ...] | None = None

    @property
    def tokens(self) -> int:
        """Tokens that are compared, padding left out."""
        return int(self.real.sum())

    @property
    def real(self) -> Tensor:
        """[batch, tokens]: true where there is a token and not padding."""
        return torch.ones_like(self.input_ids).bool() if self.attention_mask is None else self.attention_mask.bool()

    def pieces(self) -> Iterator[Tensor]:
        """The input in its chunks, [batch, n] each."""
        assert self.chunks is not None
        for start, end in pairwise((0, *accumulate(self.chunks))):
            yield self.input_ids[:, start:end]


@dataclass(frozen=True, slots=True)
class Blind:
    """A declared field that no probe can see, and why."""

    field: str
    why: str


def derive_probes(architecture: Architecture, seed: int = SEED) -> tuple[list[Probe], list[Blind]]:
    """The probes of an Architecture, and what they cannot see.

    A model with a learned table gets no position beyond it.
    """
    generator = torch.Generator().manual_seed(seed)
    wall = architecture.embedding.positions or 2**62

    def ids(rows: int, tokens: int) -> Tensor:
        return torch.randint(0, architecture.vocab_size, (rows, tokens), generator=generator)

    probes = [
        Probe(f"{length} tokens", purpose, ids(1, length))
        for length, purpose in (
            (8, "a short prompt"),
            (64, "heads, positions, norms and activations"),
            (_LONG, "positions in the hundreds"),
        )
    ]
    windows, blind = _window_probes(architecture, ids)
    probes += windows
    probes.append(_padded(ids(len(_ROWS), max(_ROWS))))
    probes.append(Probe("cache", "prefill, single steps, uneven chunks", ids(1, sum(_CHUNKS)), chunks=_CHUNKS))
    probes += _distant(architecture, ids)
    return [probe for probe in probes if probe.input_ids.shape[1] <= wall], blind


def _window_probes(architecture: Architecture, ids: _Ids) -> tuple[list[Probe], list[Blind]]:
    """Three windows of tokens, as far as probes go, for every window; those too long to cross are blind."""
    windows = sorted({layer.mixer.window for layer in architecture.layers if layer.mixer.window})
    probes, blind = [], []
    for window in windows:
        length = min(3 * window, LONGEST)
        if window >= LONGEST:
            why = f"a window of {window} shows after {window} tokens, and probes have {LONGEST} at most"
            blind.append(Blind("attention.window", why))
        elif length > _LONG:
            probes.append(Probe(f"{length} tokens", f"crosses the window of {window}", ids(1, length)))
    return probes, blind


def _padded(input_ids: Tensor) -> Probe:
    """Rows of unequal length, padded on the left, positions counted from each row's first token."""
    longest = input_ids.shape[1]
    mask = torch.tensor([[0] * (longest - length) + [1] * length for length in _ROWS])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return Probe("left-padded batch", "padding and positions of unequal rows", input_ids * mask, positions, mask)


def _distant(architecture: Architecture, ids: _Ids) -> list[Probe]:
    """Positions with gaps, up to the end of the context and around every original context.

    The mask of ones is there because transformers reads a gap in position ids without a mask as
    packed documents.
    """
    context = architecture.context
    marks = {0, 1, 2, context // 2, context - 2, context - 1}
    for layer in architecture.layers:
        original = layer.mixer.rope.original_context if layer.mixer.rope else None
        if original is not None:
            marks |= {original // 4, original - 1, original, original + 1, 2 * original}
    probes = [("distant positions", "positions up to the end of the context", marks, context)]
    if any(layer.mixer.rope for layer in architecture.layers) and architecture.embedding.positions is None:
        beyond = {0, context - 1, context, 2 * context, *(mark for mark in marks if mark >= context)}
        probes.append(("beyond the context", "what changes past the trained length", beyond, 2**62))
    found = []
    for name, purpose, wanted, end in probes:
        steps = {mark + step for mark in wanted for step in range(4)}
        positions = torch.tensor([sorted(step for step in steps if 0 <= step < end)])
        found.append(Probe(name, purpose, ids(1, positions.shape[1]), positions, torch.ones_like(positions)))
    return found
