"""Positions: rotary embeddings with their scalings, a learned table, or none.

Rotary embedding (Su et al. 2021): the pair i of a head turns by position × f_i with
f_i = base^(-2i/d) over the d channels that rotate. Every scaling rule (scaling.py) changes f_i only, and
some scale the cosines and sines by an attention factor. The formulas are those of transformers
5.24, modeling_rope_utils.py, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Finding, Positive, Size, Surroundings
from archc.parts.elementary import log
from archc.parts.scaling import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongropeScaling,
    NtkAlphaScaling,
    ProportionalScaling,
    Scaling,
    YarnScaling,
)

Pairing = Literal["half", "interleaved"]
Direction = Literal["forward", "backward"]
Float32 = Literal["angles", "turning", "all"]
SinusoidLayout = Literal["interleaved", "blocks"]
SinusoidEnd = Literal["open", "exact"]


class RopeFields(Fields, frozen=True, kw_only=True):
    """`position: {kind: rope}`."""

    kind: Literal["rope"]
    base: Annotated[float, Meta(gt=1, lt=1e15, description="Base of the frequencies base^(-2i/d).")]
    pairing: Annotated[
        Pairing,
        Meta(
            description="Which channels turn together: half pairs (i, i + d/2), interleaved pairs (2i, 2i + 1). The "
            "weights are trained for one of them."
        ),
    ] = "half"
    partial: Annotated[
        float, Meta(gt=0, le=1, description="Share of each head, from its first channel, that rotates.")
    ] = 1.0
    direction: Annotated[
        Direction,
        Meta(
            description="forward turns a pair (a, b) to (a·cos - b·sin, b·cos + a·sin), backward the other way round. "
            "Weights are trained for one of them."
        ),
    ] = "forward"
    float32: Annotated[
        Float32,
        Meta(
            description="What is worked out in 32-bit numbers, whatever the type of the weights: angles, so that "
            "cosines and sines are rounded; turning as well, by those rounded ones; or all, where they are not rounded."
        ),
    ] = "angles"
    scaling: Annotated[
        Scaling | None, Meta(description="How the frequencies are changed for contexts beyond the trained length.")
    ] = None

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
            direction=self.direction,
            float32=self.float32,
            scaling=self.scaling,
            attention_factor=1.0 if self.scaling is None else self.scaling.amplitude(context),
        )

    def _rotary_dim(self, head_dim: int) -> int:
        return math.floor(head_dim * self.partial)


class NoRopeFields(Fields, frozen=True, kw_only=True):
    """Positions by which no head turns."""

    def build(self, head_dim: int, context: int) -> None:
        """There is nothing for a mixer to apply."""


class LearnedFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: learned}`: a trained row per position is added to the embedding."""

    kind: Literal["learned"]
    offset: Annotated[
        int, Meta(ge=0, le=2**16, description="Rows at the start of the table that no position uses.")
    ] = 0


class AxialFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: axial}`: a position's rows in two trained tables, side by side, are added to the embedding.

    Positions fill a rectangle row by row; each of its rows has a row in the first table, each column in the second
    (Kitaev et al. 2020).
    """

    kind: Literal["axial"]
    rows: Annotated[Size, Meta(description="Rows of the rectangle, and of the first table.")]
    columns: Annotated[Size, Meta(description="Columns of the rectangle, and rows of the second table.")]
    row_width: Annotated[Size, Meta(description="Channels of the first table; the second has the rest of hidden_size.")]

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Both tables have channels, and together a row for every position."""
        if around.hidden_size is not None and self.row_width >= around.hidden_size:
            yield Finding(
                "E201",
                ("position", "row_width"),
                f"row_width {self.row_width} leaves no channels of hidden_size {around.hidden_size} for columns",
                f"choose less than {around.hidden_size}",
            )
        if around.context is not None and self.rows * self.columns < around.context:
            yield Finding(
                "E201",
                ("position", "rows"),
                f"{self.rows} rows of {self.columns} columns have no place for a context of {around.context}",
                "enlarge the rectangle, or shorten context",
            )


class NoPositionFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: none}`: the mixer sees no positions (NoPE)."""

    kind: Literal["none"]


class SinusoidalFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: sinusoidal}`: fixed sines and cosines (Vaswani et al. 2017) are added to the embedding."""

    kind: Literal["sinusoidal"]
    offset: Annotated[int, Meta(ge=0, le=2**16, description="Number of the first position.")] = 0
    layout: Annotated[
        SinusoidLayout,
        Meta(
            description="interleaved: sine and cosine of a frequency are neighbours; blocks: all sines, then all "
            "cosines."
        ),
    ] = "interleaved"
    slowest: Annotated[
        SinusoidEnd,
        Meta(
            description="Frequencies over d channels: open, 10000^(-2i/d), which stops short of 1/10000; exact, "
            "10000^(-2i/(d-2)), which ends there."
        ),
    ] = "open"

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Sines and cosines come in pairs, of which `exact` needs more than one."""
        size = around.hidden_size
        if size is not None and (size % 2 or (self.slowest == "exact" and size == 2)):
            yield Finding(
                "E202",
                ("position", "kind"),
                f"hidden_size {size} leaves no pairs of sine and cosine for sinusoidal positions",
                "choose an even hidden_size, of more than one pair with slowest: exact",
            )


class BucketFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: buckets}`: attention logits get a learned bias per head, by buckets of distances.

    As in T5 (Raffel et al. 2020). All layers share the biases. Half of the buckets are for keys before the query, half
    for those after it. Of each half, one half holds a distance each, the others ever longer stretches, up to
    max_distance. Between tokens of two segments stands the bias of that pair of segments instead.
    """

    kind: Literal["buckets"]
    buckets: Annotated[Size, Meta(description="Buckets of distances, in both directions together.")]
    max_distance: Annotated[Size, Meta(description="Distance from which on all are in the last bucket.")]
    segments: Annotated[
        int, Meta(ge=0, le=2**16, description="Segments that tokens may belong to, every pair of which has a bias.")
    ] = 0

    @property
    def rows(self) -> int:
        """Biases of a head."""
        return self.buckets + self.segments**2


class AlibiFields(NoRopeFields, frozen=True, kw_only=True):
    """`position: {kind: alibi}`: attention logits fall with distance, by a slope per head (Press et al. 2022)."""

    kind: Literal["alibi"]
    max_bias: Annotated[
        Positive,
        Meta(
            description="Head h of n has the slope 2^(-max_bias·h/n). Where n is no power of two: the m heads of the "
            "next lower one have theirs, the rest those of the odd heads of 2m."
        ),
    ] = 8.0
    scaled: Annotated[bool, Meta(description="Whether attention.scale multiplies the distances too.")] = False


PositionFields = (
    RopeFields | LearnedFields | AxialFields | SinusoidalFields | AlibiFields | BucketFields | NoPositionFields
)


class Rope(Struct, frozen=True):
    """Rotary positions of a mixer: the first `rotary_dim` channels of each head turn."""

    base: float
    pairing: Pairing
    rotary_dim: int
    head_dim: int
    direction: Direction
    float32: Float32
    scaling: Scaling | None
    attention_factor: float

    @property
    def pairs(self) -> int:
        """Number of channel pairs that turn."""
        return self.rotary_dim // 2

    @property
    def length_matters(self) -> bool:
        """Whether angles, or what multiplies cosines and sines, depend on the length of the input."""
        return self.scaling is not None and (self.scaling.length_matters or self.long_attention_factor is not None)

    @property
    def original_context(self) -> int | None:
        """The length before the stretch, where the scaling states one."""
        return None if self.scaling is None else self.scaling.original_context

    @property
    def long_attention_factor(self) -> float | None:
        """The attention factor of inputs beyond the original context, where it is another."""
        long = None if self.scaling is None else self.scaling.long_amplitude
        return None if long == self.attention_factor else long

    def amplitude(self, length: int) -> float:
        """What multiplies cosines and sines of an input of `length` positions."""
        long = self.long_attention_factor
        beyond = self.original_context is not None and length > self.original_context
        return long if long is not None and beyond else self.attention_factor

    def frequencies(self, length: int = 1) -> list[float]:
        """Radians per position of every pair for an input of `length` positions, fastest first without scaling."""
        return [self.frequency(pair, length) for pair in range(self.pairs)]

    def unscaled_frequencies(self) -> list[float]:
        """Radians per position of every pair, fastest first, before any scaling."""
        return [self.unscaled_frequency(pair) for pair in range(self.pairs)]

    def kept(self) -> list[float]:
        """For each pair, how much of its unscaled frequency remains: 1 unchanged, 0 fully stretched."""
        return [self.keeps(pair) for pair in range(self.pairs)]

    def unscaled_frequency(self, pair: int) -> float:
        """Radians per position of a pair, counted from 0, before any scaling."""
        return self._speed(self.base, pair)

    def frequency(self, pair: int, length: int = 1) -> float:
        """Radians per position of a pair for an input of `length` positions."""
        plain = self.unscaled_frequency(pair)
        match self.scaling:
            case None:
                return plain
            case LinearScaling(factor=factor):
                return plain / factor
            case DynamicScaling() as rule:
                stretch = rule.factor * max(length, rule.original_context) / rule.original_context - (rule.factor - 1)
                base = self.base * stretch ** (self.rotary_dim / (self.rotary_dim - 2))
                return self._speed(base, pair)
            case Llama3Scaling() | YarnScaling() as rule:
                keep = self.keeps(pair)
                return plain / rule.factor * (1 - keep) + plain * keep
            case LongropeScaling() as rule:
                return plain / (rule.long_factors if length > rule.original_context else rule.short_factors)[pair]
            case NtkAlphaScaling(alpha=alpha):
                base = self.base * alpha ** (self.rotary_dim / (self.rotary_dim - 2))
                return self._speed(base, pair)
            case ProportionalScaling() as rule:
                return plain / rule.factor if pair < rule.turning(self.rotary_dim) else 0.0

    def _speed(self, base: float, pair: int) -> float:
        speed: float = base ** (-2 * pair / self.rotary_dim)
        return speed

    def keeps(self, pair: int) -> float:
        """How much of its unscaled frequency remains to a pair.

        llama3: a pair that makes n turns within the original context keeps
        clamp((n - low) / (high - low), 0, 1). yarn: a linear ramp over the pair index, between the
        pairs that make beta_fast and beta_slow turns.
        """
        match self.scaling:
            case Llama3Scaling() as rule:
                turns = rule.original_context * self.unscaled_frequency(pair) / math.tau
                width = rule.high_freq_factor - rule.low_freq_factor
                if width == 0:
                    return 1.0 if turns >= rule.low_freq_factor else 0.0
                return min(1.0, max(0.0, (turns - rule.low_freq_factor) / width))
            case YarnScaling():
                low, high = self.yarn_ramp()
                return 1 - min(1.0, max(0.0, (pair - low) / (high - low)))
            case LinearScaling(factor=factor) if factor > 1:
                return 0.0
            case LongropeScaling(long_factors=factors):
                return 1.0 if factors[pair] == 1 else 0.0
            case DynamicScaling(factor=factor) | NtkAlphaScaling(alpha=factor) if factor > 1:
                return 1.0 if pair == 0 else 0.0
            case ProportionalScaling(factor=factor) as rule:
                return 1.0 if factor == 1 and pair < rule.turning(self.rotary_dim) else 0.0
            case _:
                return 1.0

    def yarn_ramp(self) -> tuple[float, float]:
        """First and last pair index of YaRN's ramp.

        The pair that makes n turns within L positions solves L·base^(-2i/d) = 2πn, so
        i = d·ln(L / 2πn) / (2·ln(base)).
        """
        rule = self.scaling
        assert isinstance(rule, YarnScaling)

        def index(turns: float) -> float:
            return self.rotary_dim * log(rule.original_context / (turns * math.tau)) / (2 * log(self.base))

        low, high = index(rule.beta_fast), index(rule.beta_slow)
        if rule.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, self.rotary_dim - 1)
        return (low, high + 0.001) if low == high else (low, high)
