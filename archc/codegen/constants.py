"""The constants at the top of a generated module, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.codegen.naming import literal
from archc.parts.position import Rope
from archc.parts.scaling import Scaling

AttentionFactors = tuple[float, float | None]
"""What multiplies cosines and sines, and what does so for long inputs, where it is another."""


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


def rope_constants(rope: Rope, p: str) -> Iterator[Constant]:
    """What the unscaled frequencies depend on."""
    yield Constant(f"{p}ROPE_BASE", literal(rope.base))
    if rope.rotary_dim < rope.head_dim:
        yield Constant(f"{p}ROTARY_DIM", literal(rope.rotary_dim), "channels of a head that rotate")


def scaling_constants(scaling: Scaling | None, factors: AttentionFactors, p: str) -> Iterator[Constant]:
    """What changes the frequencies for long inputs."""
    for name, value in scaling.numbers.items() if scaling else ():
        if isinstance(value, tuple):
            table = "".join(f"    {literal(float(entry))},\n" for entry in value)
            yield Constant(f"{p}ROPE_{name.upper()}", f"(\n{table})")
        else:
            yield Constant(f"{p}ROPE_{name.upper()}", literal(value))
    usual, long = factors
    if usual != 1 or long is not None:
        yield Constant(f"{p}ROPE_ATTENTION_FACTOR", literal(usual), "multiplies cosines and sines")
    if long is not None:
        yield Constant(f"{p}ROPE_LONG_ATTENTION_FACTOR", literal(long), "the same for long inputs")
