"""Probes: the inputs that a port and its reference are compared on, derived from the Architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from archc.architecture.model import Architecture

if TYPE_CHECKING:
    from archc.parts.base import MixerPart

SEED = 20_240_917
LONGEST = 2048
SHIFTED = "shifted positions"
UNUSED = "unused tokens"
_LENGTHS = (
    (8, "a short prompt"),
    (64, "heads, positions, norms and activations"),
    (512, "positions in the hundreds"),
)
_LONG = 512
_TYPICAL = 64
_SHIFTS = (500, 5000)
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

    @property
    def positions_follow(self) -> bool:
        """Whether its positions are those that count the tokens of each row and skip padding."""
        return self.position_ids is None or bool((self.position_ids == (self.real.cumsum(-1) - 1).clamp(min=0)).all())

    def pieces(self) -> Iterator[Tensor]:
        """The input in its chunks, [batch, n] each."""
        yield from (step.input_ids for step in self.steps())

    def steps(self) -> Iterator[Probe]:
        """The input in its chunks, as each is passed with a cache: its mask is that of all tokens so far."""
        assert self.chunks is not None
        for start, end in pairwise((0, *accumulate(self.chunks))):
            positions = None if self.position_ids is None else self.position_ids[:, start:end]
            mask = None if self.attention_mask is None else self.attention_mask[:, :end]
            yield Probe(self.name, self.purpose, self.input_ids[:, start:end], positions, mask)


@dataclass(frozen=True, slots=True)
class Blind:
    """A declared field, or something that a model does, that no probe can see, and why."""

    field: str
    why: str
    declared: bool = False
    """Whether it is a field of the spec, and not a probe or an invariant that one side cannot run."""


def derive_probes(
    architecture: Architecture,
    seed: int = SEED,
    avoid: frozenset[int] = frozenset(),
    wall: int | None = None,
    known: int | None = None,
) -> tuple[list[Probe], list[Blind]]:
    """The probes of an Architecture, and what they cannot see. Tokens to `avoid` stand for nothing, as padding does.

    A model with a learned table gets no position beyond it, nor beyond the `wall` of its reference: probes shrink to
    fit, or what they would show is blind. `known` is how many tokens the tokenizer has, if that is known.
    """
    generator = torch.Generator().manual_seed(seed)
    wall = wall or architecture.embedding.positions or 2**62

    def ids(rows: int, tokens: int) -> Tensor:
        found = torch.randint(0, architecture.vocab_size, (rows, tokens), generator=generator)
        for token in sorted(avoid):
            found[found == token] = (token + 1) % architecture.vocab_size
        return found

    purposes = {min(length, wall): purpose for length, purpose in reversed(_LENGTHS)}
    probes = [Probe(_named(length), purposes[length], ids(1, length)) for length in sorted(purposes)]
    blind: list[Blind] = []
    for more, unseen in (
        _far_probes(architecture, ids, wall),
        _padded(ids, wall),
        _cached(ids, wall),
        (_distant(architecture, ids, wall), []),
        (_shifted(architecture, probes, wall), []),
        (_unused(architecture, ids, wall, known), []),
    ):
        probes += more
        blind += unseen
    return probes, blind


def mixers(architecture: Architecture) -> list[MixerPart]:
    """What lets positions meet, layer by layer."""
    return [layer.mixer for layer in architecture.layers if layer.mixer is not None]


def length_matters(architecture: Architecture) -> bool:
    """Whether rotations depend on the length of the input."""
    return any(mixer.rope is not None and mixer.rope.length_matters for mixer in mixers(architecture))


def straddling(size: int, tokens: int) -> tuple[int, ...]:
    """Pieces of an input that reach up to a window of `size`, step over its edge, and lie across it; about 2.5 windows.

    What is left of the input is the last one.
    """
    chunks = [size - 1, 1, 1, size // 2, size + 1, 1]
    while sum(chunks) >= tokens:
        chunks.pop()
    return (*chunks, tokens - sum(chunks))


def _named(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def _far_probes(architecture: Architecture, ids: _Ids, wall: int) -> tuple[list[Probe], list[Blind]]:
    """Three times as many tokens as each field takes to show, as far as probes go; what takes longer is blind."""
    longest = min(LONGEST, wall)
    probes, blind = [], []
    for field, size in sorted({found for mixer in mixers(architecture) for found in mixer.shows_beyond}):
        name, length = field.rpartition(".")[2].replace("_", " "), min(3 * size, longest)
        if size >= longest:
            why = f"a {name} of {size} shows after {size} tokens, and probes have {longest} at most"
            blind.append(Blind(field, why, declared=True))
        elif length > _LONG:
            probes.append(Probe(_named(length), f"crosses the {name} of {size}", ids(1, length)))
    return probes, blind


def _padded(ids: _Ids, wall: int) -> tuple[list[Probe], list[Blind]]:
    """Rows of unequal length, padded on the left, positions counted from each row's first token."""
    longest = min(max(_ROWS), wall)
    if longest == 1:
        return [], [Blind("padding", "rows of a single position have no unequal lengths")]
    rows = [max(length * longest // max(_ROWS), 1) for length in _ROWS]
    mask = torch.tensor([[0] * (longest - length) + [1] * length for length in rows])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    purpose = "padding and positions of unequal rows"
    return [Probe("left-padded batch", purpose, ids(len(rows), longest) * mask, positions, mask)], []


def _cached(ids: _Ids, wall: int) -> tuple[list[Probe], list[Blind]]:
    """A prefill, single steps and uneven chunks; fewer and shorter ones where there are few positions."""
    if wall == 1:
        return [], [Blind("cache", "a single position leaves nothing to decode after it")]
    room = min(sum(_CHUNKS), wall)
    chunks = [max(length * room // sum(_CHUNKS), 1) for length in _CHUNKS]
    while sum(chunks) > room:
        chunks.pop()
    purpose = "prefill, single steps, uneven chunks"
    return [Probe("cache", purpose, ids(1, sum(chunks)), chunks=tuple(chunks))], []


def _shifted(architecture: Architecture, plain: list[Probe], wall: int) -> list[Probe]:
    """A typical prompt far from position 0, in a row for each offset: rotations know distances alone.

    Not where rotations depend on the length of the input, nor where positions are added to the embedding.
    """
    typical = min(plain, key=lambda probe: abs(probe.tokens - _TYPICAL)).input_ids
    room = min(architecture.context, wall) - typical.shape[1]
    rotated = any(mixer.rope is not None for mixer in mixers(architecture))
    if not rotated or room <= 0 or architecture.embedding.positions or length_matters(architecture):
        return []
    offsets = torch.tensor(sorted({min(offset, room) for offset in _SHIFTS}))
    positions = torch.arange(typical.shape[1]) + offsets[:, None]
    ids = typical.expand(len(offsets), -1)
    purpose = f"a prompt {' and '.join(f'{offset:,}' for offset in offsets.tolist())} positions further on"
    return [Probe(SHIFTED, purpose, ids, positions, torch.ones_like(positions))]


def _unused(architecture: Architecture, ids: _Ids, wall: int, known: int | None) -> list[Probe]:
    """Ids that no text has, of rows that pad the vocabulary, by turns with others: embedded, and among the logits."""
    beyond = range(known, architecture.vocab_size) if known else range(0)
    tokens = min(8, wall)
    if not beyond or tokens < 2:
        return []
    found = ids(1, tokens)
    found[0, 1::2] = torch.linspace(beyond[0], beyond[-1], tokens // 2).round().long()
    return [Probe(UNUSED, f"rows of the vocabulary beyond the tokenizer's {known:,}", found)]


def _distant(architecture: Architecture, ids: _Ids, wall: int) -> list[Probe]:
    """Positions with gaps: up to the end of the context, around every original context, and just up to those.

    The mask of ones is there because transformers reads a gap in position ids without a mask as
    packed documents.
    """
    context = min(architecture.context, wall)
    marks = {0, 1, 2, context // 2, context - 2, context - 1}
    ropes = [mixer.rope for mixer in mixers(architecture) if mixer.rope is not None]
    for original in {rope.original_context for rope in ropes}:
        if original is not None:
            marks |= {original // 4, original - 1, original, original + 1, 2 * original}
    probes = [("distant positions", "positions up to the end of the context", marks, context)]
    if ropes and wall > context:
        beyond = {0, context - 1, context, 2 * context, *(mark for mark in marks if mark >= context)}
        probes.append(("beyond the context", "what changes past the trained length", beyond, 2**62))
    for original in sorted({rope.original_context for rope in ropes if rope.length_matters and rope.original_context}):
        near = {0, original // 2, original - 3}
        probes += [
            (f"{end} positions", "the length at which rotations change", near, end)
            for end in (original, original + 1)
            if end <= wall
        ]
    found = []
    for name, purpose, wanted, end in probes:
        steps = {mark + step for mark in wanted for step in range(4)}
        positions = torch.tensor([sorted(step for step in steps if 0 <= step < end)])
        found.append(Probe(name, purpose, ids(1, positions.shape[1]), positions, torch.ones_like(positions)))
    return found
