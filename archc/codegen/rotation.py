"""Rotary positions of a generated module: its frequencies, tables and rotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.naming import Variant, fitted, variants
from archc.parts.position import Rope
from archc.parts.scaling import Scaling


@dataclass(frozen=True, slots=True)
class Turn:
    """How a head is turned: which channels pair up, and whether some do not turn."""

    pairing: str
    partial: bool


@dataclass(frozen=True, slots=True)
class ScalingView:
    """A function that gives frequencies, and the prefix of the constants it reads."""

    function: str
    constants: str
    rule: Scaling | None
    attention_factor: float

    @property
    def length_matters(self) -> bool:
        """Whether its frequencies depend on the length of the input."""
        return self.rule is not None and self.rule.length_matters

    @property
    def parameters(self) -> list[str]:
        """The function's parameters."""
        length = ["length: Tensor"] if self.length_matters else []
        return ["base: float", "channels: int", *length, "device: torch.device"]


@dataclass(frozen=True, slots=True)
class RopeView:
    """One table of cosines and sines: the variable that holds it, and what it is made from."""

    variable: str
    kinds: tuple[str, ...]
    scaling: ScalingView
    base: str
    channels: str

    @property
    def attention_factor(self) -> str:
        """What multiplies cosines and sines."""
        return f"{self.scaling.constants}ROPE_ATTENTION_FACTOR" if self.scaling.attention_factor != 1 else "1.0"

    def assignment(self, indent: int, *, with_factor: bool) -> str:
        """The statement that makes the table."""
        length = ["length"] if self.scaling.length_matters else []
        arguments = [self.base, self.channels, *length, "device"]
        frequencies = fitted(indent + 4, self.scaling.function, arguments, ",").removesuffix(",")
        factor = [self.attention_factor] if with_factor else []
        return fitted(
            indent,
            f"{self.variable} = rotation_table",
            [frequencies, "position_ids", *factor, "x_BTD.dtype"],
        )


def turn_of(rope: Rope) -> Turn:
    """How a rope turns a head."""
    return Turn(rope.pairing, rope.rotary_dim < rope.head_dim)


def turn_variants(ropes: Sequence[Variant[Rope]]) -> list[Variant[Turn]]:
    """The rotations that a model needs."""
    return variants((variant.kinds[0], turn_of(variant.value)) for variant in ropes)


def function_of(rope: Rope | None, turns: Sequence[Variant[Turn]]) -> str | None:
    """The function that turns heads by a rope."""
    return next((f"{turn.function_prefix}rotate" for turn in turns if rope and turn.value == turn_of(rope)), None)


def scaling_variants(ropes: Sequence[Variant[Rope]]) -> list[Variant[tuple[Scaling | None, float]]]:
    """The rules by which frequencies are made, whatever their base."""
    return variants((kind, (rope.value.scaling, rope.value.attention_factor)) for rope in ropes for kind in rope.kinds)


def rope_views(ropes: Sequence[Variant[Rope]], head_dims: Mapping[int, str]) -> list[RopeView]:
    """The tables that a model needs; `head_dims` are the names of the constants for sizes of heads."""
    scaling_of = {
        kind: ScalingView(f"{variant.function_prefix}frequencies", variant.constant_prefix, *variant.value)
        for variant in scaling_variants(ropes)
        for kind in variant.kinds
    }
    return [
        RopeView(
            variable=f"{variant.function_prefix}rotation",
            kinds=variant.kinds,
            scaling=scaling_of[variant.kinds[0]],
            base=f"{variant.constant_prefix}ROPE_BASE",
            channels=f"{variant.constant_prefix}ROTARY_DIM"
            if variant.value.rotary_dim < variant.value.head_dim
            else head_dims[variant.value.head_dim],
        )
        for variant in ropes
    ]
