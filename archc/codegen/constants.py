"""The constants at the top of a generated module, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from archc.architecture.model import Architecture
from archc.codegen.naming import literal
from archc.parts.position import Rope
from archc.parts.scaling import Scaling


@dataclass(frozen=True, slots=True)
class Constant:
    """A line `NAME = value  # comment` at the top of the module."""

    name: str
    value: str
    comment: str = ""


def size_constants(architecture: Architecture) -> Iterator[Constant]:
    """Sizes of the whole model."""
    yield Constant("VOCAB_SIZE", literal(architecture.vocab_size))
    yield Constant("WIDTH", literal(architecture.hidden_size), "channels of the residual stream")
    yield Constant("LAYERS", literal(len(architecture.layers)))
    yield Constant("CONTEXT", literal(architecture.context), "positions the model is meant for")


def window_constants(window: int | None, p: str) -> Iterator[Constant]:
    """How far back a query sees, if not all the way."""
    if window is not None:
        yield Constant(f"{p}WINDOW", literal(window), "positions a query sees, its own included")


def rope_constants(rope: Rope, p: str) -> Iterator[Constant]:
    """What the unscaled frequencies depend on."""
    yield Constant(f"{p}ROPE_BASE", literal(rope.base))
    if rope.rotary_dim < rope.head_dim:
        yield Constant(f"{p}ROTARY_DIM", literal(rope.rotary_dim), "channels of a head that rotate")


def scaling_constants(scaling: Scaling | None, attention_factor: float, p: str) -> Iterator[Constant]:
    """What changes the frequencies for long inputs."""
    for name, value in structs.asdict(scaling).items() if scaling else ():
        if isinstance(value, tuple):
            table = "".join(f"    {literal(float(entry))},\n" for entry in value)
            yield Constant(f"{p}ROPE_{name.upper()}", f"(\n{table})")
        elif scaling and name not in scaling.not_in_formula:
            yield Constant(f"{p}ROPE_{name.upper()}", literal(value))
    if attention_factor != 1:
        yield Constant(f"{p}ROPE_ATTENTION_FACTOR", literal(attention_factor), "multiplies cosines and sines")


def end_constants(architecture: Architecture) -> Iterator[Constant]:
    """What scales the embedding and the logits."""
    scale, head = architecture.embedding.scale, architecture.head
    if scale is not None:
        root = scale == architecture.hidden_size**0.5
        yield Constant("EMBEDDING_SCALE", "WIDTH**0.5" if root else literal(scale))
    if head.scale is not None:
        yield Constant("LOGIT_SCALE", literal(head.scale))
    if head.softcap is not None:
        yield Constant("LOGIT_SOFTCAP", literal(head.softcap))
