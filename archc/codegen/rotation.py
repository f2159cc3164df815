"""Rotary positions of a generated module: its frequencies, tables and rotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.constants import AttentionFactors
from archc.codegen.naming import Variant, fitted, variants
from archc.parts.position import Direction, Pairing, Rope
from archc.parts.scaling import Scaling


@dataclass(frozen=True, slots=True)
class Turn:
    """How a head is turned: which channels pair up, whether some do not turn, which way round, and how exactly."""

    pairing: Pairing
    partial: bool
    direction: Direction
    float32: bool

    @property
    def heads(self) -> str:
        """What is turned."""
        return "x_BHTC.float()" if self.float32 else "x_BHTC"

    @property
    def rounded(self) -> str:
        """What brings heads that have turned back to the type of the others."""
        return ".to(x_BHTC.dtype)" if self.float32 else ""

    @property
    def way(self) -> str:
        """The word for turning the other way round."""
        return " backward" if self.direction == "backward" else ""

    @property
    def turned(self) -> str:
        """Both channels of a pair (a, b), once they have turned."""
        first, second = ("-", "+") if self.direction == "forward" else ("+", "-")
        return f"(a * cos_B1TC {first} b * sin_B1TC, b * cos_B1TC {second} a * sin_B1TC)"


@dataclass(frozen=True, slots=True)
class ScalingView:
    """A function that gives frequencies, what multiplies cosines and sines, and the prefix of the constants of both."""

    prefix: str
    constants: str
    rule: Scaling | None
    factors: AttentionFactors

    @property
    def function(self) -> str:
        """The function's name."""
        return f"{self.prefix}frequencies"

    @property
    def amplitude(self) -> str | None:
        """The name of the function that says what multiplies cosines and sines, where that depends on the length."""
        return f"{self.prefix}amplitude" if self.factors[1] is not None else None

    @property
    def attention_factor(self) -> str:
        """What multiplies cosines and sines."""
        if self.amplitude:
            return f"{self.amplitude}(length)"
        return f"{self.constants}ROPE_ATTENTION_FACTOR" if self.factors[0] != 1 else "1.0"

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
    dtype: str

    def assignment(self, indent: int, *, with_factor: bool) -> str:
        """The statement that makes the table."""
        length = ["length"] if self.scaling.length_matters else []
        arguments = [self.base, self.channels, *length, "device"]
        frequencies = fitted(indent + 4, self.scaling.function, arguments, ",").removesuffix(",")
        factor = [self.scaling.attention_factor] if with_factor else []
        return fitted(
            indent,
            f"{self.variable} = rotation_table",
            [frequencies, "position_ids", *factor, self.dtype],
        )


def turn_of(rope: Rope) -> Turn:
    """How a rope turns a head."""
    return Turn(rope.pairing, rope.rotary_dim < rope.head_dim, rope.direction, rope.float32 != "angles")


def turn_variants(ropes: Sequence[Variant[Rope]]) -> list[Variant[Turn]]:
    """The rotations that a model needs."""
    return variants((variant.kinds[0], turn_of(variant.value)) for variant in ropes)


def function_of(rope: Rope | None, turns: Sequence[Variant[Turn]]) -> str | None:
    """The function that turns heads by a rope."""
    return next((f"{turn.function_prefix}rotate" for turn in turns if rope and turn.value == turn_of(rope)), None)


def scaling_variants(ropes: Sequence[Variant[Rope]]) -> list[Variant[tuple[Scaling | None, AttentionFactors]]]:
    """The rules by which frequencies are made, whatever their base."""
    return variants((kind, _rule(rope.value)) for rope in ropes for kind in rope.kinds)


def _rule(rope: Rope) -> tuple[Scaling | None, AttentionFactors]:
    return rope.scaling, (rope.attention_factor, rope.long_attention_factor)


def rope_views(ropes: Sequence[Variant[Rope]], head_dims: Mapping[int, str]) -> list[RopeView]:
    """The tables that a model needs; `head_dims` are the names of the constants for sizes of heads."""
    scaling_of = {
        kind: ScalingView(variant.function_prefix, variant.constant_prefix, *variant.value)
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
            dtype="torch.float32" if variant.value.float32 == "all" else "x_BTD.dtype",
        )
        for variant in ropes
    ]
