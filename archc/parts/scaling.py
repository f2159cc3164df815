"""Scalings of rotary positions: how the frequencies of pairs change for contexts beyond the trained length.

The formulas are those of transformers 5.24, modeling_rope_utils.py, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from archc.parts.base import Fields, Finding, Positive, Size
from archc.parts.elementary import log, root

Factor = Annotated[float, Meta(ge=1, lt=1e9)]
Turns = Annotated[float, Meta(ge=1e-9, lt=1e9)]
Divisors = tuple[Annotated[float, Meta(ge=1e-9, lt=1e9)], ...]
_SCALING = ("position", "scaling")


class ScalingFields(Fields, frozen=True, kw_only=True):
    """What all scalings answer about themselves."""

    kind: ClassVar[str]
    needs_math: ClassVar[bool] = False
    """Whether the formula takes logarithms or counts turns."""
    not_in_formula: ClassVar[tuple[str, ...]] = ()
    """Fields that are no number in the formula: they act through the attention factor alone, or choose a variant."""

    @property
    def numbers(self) -> dict[str, float | tuple[float, ...]]:
        """What stands in the formula, by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in self.not_in_formula}

    @property
    def length_matters(self) -> bool:
        """Whether the frequencies depend on the length of the input."""
        return False

    @property
    def reach(self) -> float | None:
        """How many times the trained length it stretches to; None where it goes by a length of its own."""
        return None

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """What does not hold for `rotary_dim` channels that turn, and for `context`, if it is known."""
        del rotary_dim, context
        yield from ()

    def amplitude(self, context: int) -> float:
        """What multiplies cosines and sines, so that attention logits grow by its square."""
        del context
        return 1.0

    @property
    def long_amplitude(self) -> float | None:
        """The same for inputs beyond the original context, where it is another."""
        return None


class LinearScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="linear"):
    """Position interpolation (Chen et al. 2023): every pair turns `factor` times slower."""

    original_context: ClassVar[None] = None
    kind: ClassVar[str] = "linear"
    factor: Annotated[Factor, Meta(description="How many times longer the context becomes.")]

    @property
    def reach(self) -> float:
        """`factor` times."""
        return self.factor


class DynamicScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="dynamic"):
    """Dynamic NTK: past `original_context` the base grows with the length of the input."""

    kind: ClassVar[str] = "dynamic"
    factor: Annotated[Factor, Meta(description="Strength of the growth of the base.")]
    original_context: Annotated[Size, Meta(description="Length up to which nothing changes.")]

    @property
    def length_matters(self) -> bool:
        """They do, beyond the original context."""
        return True

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The growth of the base is a power of d / (d - 2), for d channels that turn."""
        del context
        yield from _more_than_a_pair("dynamic", rotary_dim)


class Llama3Scaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="llama3"):
    """Llama 3.1's bands: fast pairs unchanged, slow pairs slowed by `factor`, a blend between."""

    needs_math = True
    kind: ClassVar[str] = "llama3"
    factor: Annotated[Factor, Meta(description="How much slower the slow pairs turn.")]
    original_context: Annotated[Size, Meta(description="Length the model was first trained at.")]
    low_freq_factor: Annotated[
        Positive, Meta(description="Pairs with fewer turns than this in original_context are slowed.")
    ]
    high_freq_factor: Annotated[
        Positive, Meta(description="Pairs with more turns than this in original_context are unchanged.")
    ]

    @property
    def numbers(self) -> dict[str, float | tuple[float, ...]]:
        """All of them; where both ends of the blended band are one, that one."""
        if self.low_freq_factor < self.high_freq_factor:
            return super().numbers
        return {"factor": self.factor, "original_context": self.original_context, "freq_factor": self.low_freq_factor}

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The bands are in order. Equal factors leave no pair to blend (Llama 4)."""
        del rotary_dim, context
        if self.high_freq_factor < self.low_freq_factor:
            yield Finding(
                "E206",
                (*_SCALING, "high_freq_factor"),
                f"high_freq_factor {self.high_freq_factor:g} is below low_freq_factor {self.low_freq_factor:g}",
                "the blended band needs high_freq_factor >= low_freq_factor",
            )


class YarnScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="yarn"):
    """YaRN (Peng et al. 2023): a ramp over the pairs between interpolation and no change."""

    needs_math = True
    not_in_formula = ("attention_factor", "mscale", "mscale_all_dim", "truncate")
    kind: ClassVar[str] = "yarn"
    factor: Annotated[Factor, Meta(description="How many times longer the context becomes.")]
    original_context: Annotated[Size, Meta(description="Length the model was first trained at.")]
    beta_fast: Annotated[Turns, Meta(description="Turns in original_context above which a pair is unchanged.")] = 32.0
    beta_slow: Annotated[Turns, Meta(description="Turns in original_context below which a pair is slowed.")] = 1.0
    attention_factor: Annotated[
        Positive | None,
        Meta(description="Scales cosines and sines; by default 0.1·ln(factor) + 1, or from the mscales."),
    ] = None
    mscale: Annotated[Positive | None, Meta(description="Numerator of the attention factor (DeepSeek).")] = None
    mscale_all_dim: Annotated[Positive | None, Meta(description="Denominator of the attention factor (DeepSeek).")] = (
        None
    )
    truncate: Annotated[bool, Meta(description="Whether the ramp begins and ends at whole pairs.")] = True

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The ramp rises, and the stretch reaches as far as the model is meant for."""
        del rotary_dim
        if self.beta_fast <= self.beta_slow:
            yield Finding(
                "E206",
                (*_SCALING, "beta_fast"),
                f"beta_fast {self.beta_fast:g} is at most beta_slow {self.beta_slow:g}",
                "the ramp needs beta_fast > beta_slow",
            )
        if context is not None and context > self.original_context * self.factor:
            reach = int(self.original_context * self.factor)
            yield Finding(
                "W402",
                (*_SCALING, "factor"),
                f"context {context} is beyond original_context × factor = {reach}",
                f"lower context to {reach}, or raise factor",
            )

    def amplitude(self, context: int) -> float:
        """As stated, or 0.1·ln(factor) + 1, or the quotient of the two forms with mscales."""
        del context
        if self.attention_factor is not None:
            return self.attention_factor
        grown = 0.1 * log(self.factor)
        if self.mscale and self.mscale_all_dim:
            return (grown * self.mscale + 1) / (grown * self.mscale_all_dim + 1)
        return grown + 1


class LongropeScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="longrope"):
    """LongRoPE (Ding et al. 2024): a table of factors per pair, one for short and one for long inputs."""

    not_in_formula = ("attention_factor", "long_attention_factor", "factor")
    kind: ClassVar[str] = "longrope"
    original_context: Annotated[int, Meta(ge=2, le=2**40, description="Inputs longer than this use the long factors.")]
    short_factors: Annotated[Divisors, Meta(description="One divisor per pair, for short inputs.")]
    long_factors: Annotated[Divisors, Meta(description="One divisor per pair, for long inputs.")]
    factor: Annotated[Factor | None, Meta(description="context / original_context unless stated.")] = None
    attention_factor: Annotated[
        Positive | None,
        Meta(description="Scales cosines and sines; by default sqrt(1 + ln(factor) / ln(original_context))."),
    ] = None
    long_attention_factor: Annotated[
        Positive | None, Meta(description="The same for inputs longer than original_context; as for others by default.")
    ] = None

    @property
    def numbers(self) -> dict[str, float | tuple[float, ...]]:
        """The tables, or the one table where they are equal, and from where on inputs are long, where it matters."""
        found: dict[str, float | tuple[float, ...]] = {}
        if self.length_matters or self.long_amplitude is not None:
            found["original_context"] = self.original_context
        if not self.length_matters:
            return {**found, "factors": self.short_factors}
        return {**found, "short_factors": self.short_factors, "long_factors": self.long_factors}

    @property
    def length_matters(self) -> bool:
        """They do where the tables differ."""
        return self.short_factors != self.long_factors

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """Both tables have a divisor for every pair."""
        del context
        for name, table in (("short_factors", self.short_factors), ("long_factors", self.long_factors)):
            if len(table) != rotary_dim // 2:
                yield Finding(
                    "E205",
                    (*_SCALING, name),
                    f"{name} has {len(table)} entries for {rotary_dim // 2} rotary pairs",
                    "give one factor for each pair",
                )

    def amplitude(self, context: int) -> float:
        """As stated, or sqrt(1 + ln(factor) / ln(original_context)); a factor of at most 1 changes nothing."""
        if self.attention_factor is not None:
            return self.attention_factor
        factor = self.factor or context / self.original_context
        return 1.0 if factor <= 1 else root(1 + log(factor) / log(self.original_context))

    @property
    def long_amplitude(self) -> float | None:
        """As stated."""
        return self.long_attention_factor


class NtkAlphaScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="ntk_alpha"):
    """A larger base, base·alpha^(d / (d - 2)) for d channels that turn, whatever the length.

    From transformers 5.24, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py.
    """

    original_context: ClassVar[None] = None
    kind: ClassVar[str] = "ntk_alpha"
    alpha: Annotated[Factor, Meta(description="How many times slower the slowest pair turns.")]

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The growth of the base is a power of d / (d - 2)."""
        del context
        yield from _more_than_a_pair("ntk_alpha", rotary_dim)


class ProportionalScaling(ScalingFields, frozen=True, kw_only=True, tag_field="kind", tag="proportional"):
    """Only the fastest pairs turn, by the frequencies that they have among all pairs of the head; the rest stand still.

    It differs from `partial`, by which pairs are made of the leading channels alone.
    """

    original_context: ClassVar[None] = None
    kind: ClassVar[str] = "proportional"
    share: Annotated[float, Meta(gt=0, le=1, description="Share of the pairs that turn.")] = 1.0
    factor: Annotated[Factor, Meta(description="How many times slower they turn.")] = 1.0

    @property
    def numbers(self) -> dict[str, float | tuple[float, ...]]:
        """Those that change something."""
        found = {"share": self.share, "factor": self.factor}
        return {name: value for name, value in found.items() if value != 1}

    @property
    def reach(self) -> float:
        """`factor` times."""
        return self.factor

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """At least one pair turns."""
        del context
        if not self.turning(rotary_dim):
            yield Finding(
                "E206",
                (*_SCALING, "share"),
                f"no pair of {rotary_dim // 2} would turn",
                "raise share, or use position.kind: none",
            )

    def turning(self, rotary_dim: int) -> int:
        """Pairs that turn."""
        return math.floor(self.share * rotary_dim / 2)


Scaling = (
    LinearScaling
    | DynamicScaling
    | Llama3Scaling
    | YarnScaling
    | LongropeScaling
    | NtkAlphaScaling
    | ProportionalScaling
)


def _more_than_a_pair(kind: str, rotary_dim: int) -> Iterator[Finding]:
    if rotary_dim <= 2:
        yield Finding(
            "E206", _SCALING, f"{kind} scaling needs more than one rotary pair", "use a larger head_dim or no scaling"
        )
