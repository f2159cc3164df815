"""What a drawing says of a part, with places for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archc.formulas.unknown import Tree, Written, follow, numbers_met, written
from archc.parts.base import FfnPart, MixerPart, Part
from archc.parts.feed_forward import ACTIVATION_NAMES
from archc.parts.norm import NORM_NAMES, Norm

_POSITIONS: Final = {"rope": "rotary positions", "alibi": "ALiBi", "buckets": "buckets of distances"}


def norm_word(norm: Norm | None) -> str | None:
    """What a norm is called; None where there is none."""
    return None if norm is None else NORM_NAMES[norm.kind]


def part_words(part: Part) -> Tree[tuple[Written, ...]]:
    """A few words each: of a mixer its heads and positions, of a feed-forward its width and gate, of either biases."""

    def run() -> tuple[Written, ...]:
        lines = list(_lines(part))
        met = numbers_met()
        return tuple(written(line, met) for line in lines)

    return follow(run)


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, MixerPart):
        yield from _of_mixer(part)
    elif isinstance(part, FfnPart):
        yield from _of_feed_forward(part)
    if any(tensor.name.endswith(".bias") for tensor in part.tensors()):
        yield "biases"


def _of_mixer(part: MixerPart) -> Iterator[str]:
    if shape := part.shape:
        yield f"{shape.heads:,} query heads"
        yield f"{shape.kv_heads:,} key/value heads of {shape.head_dim:,}"
    if part.head_norms:
        yield f"{NORM_NAMES[part.head_norms[0].kind]} of queries and keys"
    if part.position_kind:
        yield _POSITIONS[part.position_kind]
    if part.window is not None:
        yield f"window of {part.window:,}"
    if part.chunk is not None:
        yield f"chunks of {part.chunk:,}"


def _of_feed_forward(part: FfnPart) -> Iterator[str]:
    if part.routed:
        yield f"{part.routed.top_k:,} of {part.routed.experts:,} experts"
    activation = part.activation and ACTIVATION_NAMES.get(part.activation, part.activation)
    yield " ".join(word for word in (activation, "gate" * part.gated) if word)
    yield f"{part.width:,} channels"
