"""What attention may have beside its projections: a learned bias by distance, and convolutions on keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Fields, Positive, Size, Tensor, linear
from archc.parts.caches import Cache, ConvCache


class DistanceBiasFields(Fields, frozen=True, kw_only=True):
    """`attention.distance_bias`: each head of a query mixes profiles, numbers for every distance, into its scores.

    A key n positions back gets r · table[:, n], with r projected from the query's input. What attention.query_scale
    does to queries is done to r, too (transformers 5.24, models/inkling/modeling_inkling.py, InklingRelativeLogits).
    """

    channels: Annotated[Size, Meta(description="Profiles that are mixed.")]
    extent: Annotated[Size, Meta(description="Distances that have a number of their own; beyond them the bias is 0.")]
    length_limit: Annotated[
        Positive | None,
        Meta(description="r, after a learned factor per head and channel, is shortened to at most this length."),
    ] = None

    def tensors(self, heads: int, input_size: int) -> Iterator[Tensor]:
        """r [heads·channels, input_size], the table [channels, extent], and the factors."""
        yield from linear("distance", heads * self.channels, input_size, False, "attention")
        yield Tensor("distance_table", (self.channels, self.extent), "attention")
        if self.length_limit is not None:
            yield Tensor("distance_factor", (heads, self.channels), "attention")

    def linear_flops(self, heads: int, input_size: int) -> int:
        """r, and its product with the table."""
        return 2 * heads * self.channels * (input_size + self.extent)


class KvConvFields(Fields, frozen=True, kw_only=True):
    """`attention.kv_conv`: projected keys and values, x, become x + conv(x), with a causal convolution per channel."""

    kernel: Annotated[Size, Meta(description="Positions that the convolution sees.")]
    taps: Annotated[
        Literal["stored", "stored_and_projected"],
        Meta(
            description="stored_and_projected: to the stored taps are added others, the same for all channels of a "
            "head, which are projected from what keys or values are projected from."
        ),
    ] = "stored"
    scaled: Annotated[
        bool, Meta(description="Whether x + conv(x) is divided by sqrt(1 + taps that a channel has).")
    ] = False

    def tensors(self, heads: int, head_dim: int, input_size: int) -> Iterator[Tensor]:
        """Taps [heads·head_dim, kernel] for keys and for values, and what projects others."""
        for name in ("k", "v"):
            yield Tensor(f"{name}_conv.weight", (heads * head_dim, self.kernel), "attention")
            if self.taps == "stored_and_projected":
                yield from linear(f"{name}_taps", heads * self.kernel, input_size, False, "attention")

    def caches(self, width: int) -> tuple[Cache, ...]:
        """The inputs of both convolutions, of `width` channels each."""
        return (ConvCache(width, self.kernel), ConvCache(width, self.kernel))

    def linear_flops(self, heads: int, head_dim: int, input_size: int) -> int:
        """Two operations per weight."""
        return 2 * sum(tensor.size for tensor in self.tensors(heads, head_dim, input_size))
