"""Positions: rotary embeddings with their scalings, a learned table, or none.

Rotary embedding (Su et al. 2021): the pair i of a head turns by position × f_i with
f_i = base^(-2i/d) over the d channels that rotate. Every scaling rule below changes f_i only, and
some scale the cosines and sines by an attention factor. The formulas are those of transformers
5.24, modeling_rope_utils.py, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from archc.parts.base import Fields, Finding, Positive, Size, Surroundings

Pairing = Literal["half", "interleaved"]
Factor = Annotated[float, Field(ge=1, lt=1e9)]
_SCALING = ("position", "scaling")


class ScalingFields(Fields):
    """What all scalings answer about themselves."""

    length_matters: ClassVar[bool] = False
    """Whether the frequencies depend on the length of the input."""
    needs_math: ClassVar[bool] = False
    """Whether the formula takes logarithms or counts turns."""
    not_in_formula: ClassVar[tuple[str, ...]] = ()
    """Fields that are no number in the formula: they act through the attention factor alone, or choose a variant."""

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """What does not hold for `rotary_dim` channels that turn, and for `context`, if it is known."""
        del rotary_dim, context
        yield from ()

    def amplitude(self, context: int) -> float:
        """What multiplies cosines and sines, so that attention logits grow by its square."""
        del context
        return 1.0


class LinearScaling(ScalingFields):
    """Position interpolation (Chen et al. 2023): every pair turns `factor` times slower."""

    original_context: ClassVar[None] = None
    kind: Literal["linear"]
    factor: Factor = Field(description="How many times longer the context becomes.")


class DynamicScaling(ScalingFields):
    """Dynamic NTK: past `original_context` the base grows with the length of the input."""

    length_matters = True
    kind: Literal["dynamic"]
    factor: Factor = Field(description="Strength of the growth of the base.")
    original_context: Size = Field(description="Length up to which nothing changes.")

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The growth of the base is a power of d / (d - 2), for d channels that turn."""
        del context
        if rotary_dim <= 2:
            yield Finding(
                "E206",
                _SCALING,
                "dynamic scaling needs more than one rotary pair",
                "use a larger head_dim or no scaling",
            )


class Llama3Scaling(ScalingFields):
    """Llama 3.1's bands: fast pairs unchanged, slow pairs slowed by `factor`, a blend between."""

    needs_math = True
    kind: Literal["llama3"]
    factor: Factor = Field(description="How much slower the slow pairs turn.")
    original_context: Size = Field(description="Length the model was first trained at.")
    low_freq_factor: Positive = Field(description="Pairs with fewer turns than this in original_context are slowed.")
    high_freq_factor: Positive = Field(description="Pairs with more turns than this in original_context are unchanged.")

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The blended band has a width."""
        del rotary_dim, context
        if self.high_freq_factor <= self.low_freq_factor:
            yield Finding(
                "E206",
                (*_SCALING, "high_freq_factor"),
                f"high_freq_factor {self.high_freq_factor:g} is at most low_freq_factor {self.low_freq_factor:g}",
                "the blended band needs high_freq_factor > low_freq_factor",
            )


class YarnScaling(ScalingFields):
    """YaRN (Peng et al. 2023): a ramp over the pairs between interpolation and no change."""

    needs_math = True
    not_in_formula = ("attention_factor", "mscale", "mscale_all_dim", "truncate")
    kind: Literal["yarn"]
    factor: Factor = Field(description="How many times longer the context becomes.")
    original_context: Size = Field(description="Length the model was first trained at.")
    beta_fast: Positive = Field(default=32.0, description="Turns in original_context above which a pair is unchanged.")
    beta_slow: Positive = Field(default=1.0, description="Turns in original_context below which a pair is slowed.")
    attention_factor: Positive | None = Field(
        default=None, description="Scales cosines and sines; by default 0.1·ln(factor) + 1, or from the mscales."
    )
    mscale: Positive | None = Field(default=None, description="Numerator of the attention factor (DeepSeek).")
    mscale_all_dim: Positive | None = Field(default=None, description="Denominator of the attention factor (DeepSeek).")
    truncate: bool = Field(default=True, description="Whether the ramp begins and ends at whole pairs.")

    def check_channels(self, rotary_dim: int, context: int | None) -> Iterator[Finding]:
        """The stretch reaches as far as the model is meant for."""
        del rotary_dim
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
        log = 0.1 * math.log(self.factor)
        if self.mscale and self.mscale_all_dim:
            return (log * self.mscale + 1) / (log * self.mscale_all_dim + 1)
        return log + 1


class LongropeScaling(ScalingFields):
    """LongRoPE (Ding et al. 2024): a table of factors per pair, one for short and one for long inputs."""

    length_matters = True
    not_in_formula = ("attention_factor", "factor")
    kind: Literal["longrope"]
    original_context: Size = Field(description="Inputs longer than this use the long factors.")
    short_factors: tuple[Positive, ...] = Field(strict=False, description="One divisor per pair, for short inputs.")
    long_factors: tuple[Positive, ...] = Field(strict=False, description="One divisor per pair, for long inputs.")
    factor: Factor | None = Field(default=None, description="context / original_context unless stated.")
    attention_factor: Positive | None = Field(
        default=None, description="Scales cosines and sines; by default sqrt(1 + ln(factor) / ln(original_context))."
    )

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
        return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(self.original_context))


Scaling = LinearScaling | DynamicScaling | Llama3Scaling | YarnScaling | LongropeScaling


class RopeFields(Fields):
    """`position: {kind: rope}`."""

    kind: Literal["rope"]
    base: Annotated[float, Field(gt=1, lt=1e15)] = Field(description="Base of the frequencies base^(-2i/d).")
    pairing: Pairing = Field(
        default="half",
        description="Which channels turn together: half pairs (i, i + d/2), interleaved pairs (2i, 2i + 1). "
        "The weights are trained for one of them.",
    )
    partial: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="Share of each head, from its first channel, that rotates."
    )
    scaling: Annotated[Scaling, Field(discriminator="kind")] | None = Field(
        default=None, description="How the frequencies are changed for contexts beyond the trained length."
    )

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """An even number of channels turns, by a scaling that fits them."""
        if around.head_dim is None:
            return  # the mixer whose heads turn asks
        rotary_dim = self._rotary_dim(around.head_dim)
        if rotary_dim % 2 or rotary_dim == 0:
            yield Finding(
                "E202",
                ("position", "partial") if self.partial != 1 else ("position",),
                f"{rotary_dim} of {around.head_dim} channels would rotate, which is not an even, positive number",
                "choose head_dim and partial so that head_dim × partial is even",
            )
        if self.scaling is not None:
            yield from self.scaling.check_channels(rotary_dim, around.context)

    def build(self, head_dim: int, context: int) -> Rope:
        """The rotary positions that the fields declare for heads of `head_dim` channels."""
        return Rope(
            base=self.base,
            pairing=self.pairing,
            rotary_dim=self._rotary_dim(head_dim),
            head_dim=head_dim,
            scaling=self.scaling,
            attention_factor=1.0 if self.scaling is None else self.scaling.amplitude(context),
        )

    def _rotary_dim(self, head_dim: int) -> int:
        return int(head_dim * self.partial)


class NoRopeFields(Fields):
    """Positions by which no head turns."""

    def build(self, head_dim: int, context: int) -> None:
        """There is nothing for a mixer to apply."""


class LearnedFields(NoRopeFields):
    """`position: {kind: learned}`: a trained row per position is added to the embedding."""

    kind: Literal["learned"]


class NoPositionFields(NoRopeFields):
    """`position: {kind: none}`: the mixer sees no positions (NoPE)."""

    kind: Literal["none"]


PositionFields = Annotated[RopeFields | LearnedFields | NoPositionFields, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary positions of a mixer: the first `rotary_dim` channels of each head turn."""

    base: float
    pairing: Pairing
    rotary_dim: int
    head_dim: int
    scaling: Scaling | None
    attention_factor: float

    @property
    def pairs(self) -> int:
        """Number of channel pairs that turn."""
        return self.rotary_dim // 2

    @property
    def length_matters(self) -> bool:
        """Whether the frequencies depend on the length of the input."""
        return self.scaling is not None and self.scaling.length_matters

    @property
    def original_context(self) -> int | None:
        """The length before the stretch, where the scaling states one."""
        return None if self.scaling is None else self.scaling.original_context

    def unscaled_frequencies(self) -> list[float]:
        """Radians per position of every pair, fastest first, before any scaling."""
        return [self.base ** (-2 * i / self.rotary_dim) for i in range(self.pairs)]

    def frequencies(self, length: int = 1) -> list[float]:
        """Radians per position of every pair for an input of `length` positions."""
        plain = self.unscaled_frequencies()
        match self.scaling:
            case None:
                return plain
            case LinearScaling(factor=factor):
                return [f / factor for f in plain]
            case DynamicScaling() as rule:
                stretch = rule.factor * max(length, rule.original_context) / rule.original_context - (rule.factor - 1)
                base = self.base * stretch ** (self.rotary_dim / (self.rotary_dim - 2))
                return [base ** (-2 * i / self.rotary_dim) for i in range(self.pairs)]
            case Llama3Scaling() as rule:
                return [f / rule.factor * (1 - keep) + f * keep for f, keep in zip(plain, self.kept(), strict=True)]
            case YarnScaling() as rule:
                return [f / rule.factor * (1 - keep) + f * keep for f, keep in zip(plain, self.kept(), strict=True)]
            case LongropeScaling() as rule:
                divisors = rule.long_factors if length > rule.original_context else rule.short_factors
                return [f / divisor for f, divisor in zip(plain, divisors, strict=True)]

    def kept(self) -> list[float]:
        """For each pair, how much of its unscaled frequency remains: 1 unchanged, 0 fully stretched.

        llama3: a pair that makes n turns within the original context keeps
        clamp((n - low) / (high - low), 0, 1). yarn: a linear ramp over the pair index, between the
        pairs that make beta_fast and beta_slow turns.
        """
        match self.scaling:
            case Llama3Scaling() as rule:
                turns = [rule.original_context * f / math.tau for f in self.unscaled_frequencies()]
                width = rule.high_freq_factor - rule.low_freq_factor
                return [min(1.0, max(0.0, (n - rule.low_freq_factor) / width)) for n in turns]
            case YarnScaling():
                low, high = self.yarn_ramp()
                return [1 - min(1.0, max(0.0, (i - low) / (high - low))) for i in range(self.pairs)]
            case LinearScaling(factor=factor) if factor > 1:
                return [0.0] * self.pairs
            case LongropeScaling(long_factors=factors):
                return [1.0 if factor == 1 else 0.0 for factor in factors]
            case DynamicScaling(factor=factor) if factor > 1:
                return [1.0] + [0.0] * (self.pairs - 1)
            case _:
                return [1.0] * self.pairs

    def yarn_ramp(self) -> tuple[float, float]:
        """First and last pair index of YaRN's ramp.

        The pair that makes n turns within L positions solves L·base^(-2i/d) = 2πn, so
        i = d·ln(L / 2πn) / (2·ln(base)).
        """
        rule = self.scaling
        assert isinstance(rule, YarnScaling)

        def index(turns: float) -> float:
            return self.rotary_dim * math.log(rule.original_context / (turns * math.tau)) / (2 * math.log(self.base))

        low, high = index(rule.beta_fast), index(rule.beta_slow)
        if rule.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, self.rotary_dim - 1)
        return (low, high + 0.001) if low == high else (low, high)
