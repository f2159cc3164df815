"""Compressed convolutional attention: queries and keys pass through convolutions (Figliolia et al. 2025).

From transformers 5.24, models/zaya/modeling_zaya.py, ZayaCCAProjection and ZayaQKNorm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.base import (
    Finding,
    Heads,
    Keys,
    MixerPart,
    PartFields,
    Settled,
    Size,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.caches import Cache, Exact, FullCache, ReachCache, SlidingCache
from archc.parts.position import Rope


class ConvolvedFields(PartFields, frozen=True, kw_only=True):
    """`attention: {kind: convolved}`.

    All query and key channels pass through two causal convolutions with shifts, one channel by itself, then one within
    each head. To that is added, for queries, the mean of the query and of its key as they were projected; for keys,
    what was added to the queries that share them, averaged. Queries and keys are brought to the length sqrt(head_dim),
    keys then multiplied by a learned number per head. The first half of all value channels is projected from the
    position's own input, the second from that of the one before.
    """

    kind: Literal["convolved"]
    heads: Annotated[Size, Meta(description="Query heads.")]
    kv_heads: Annotated[Size, Meta(description="Key/value heads.")]
    head_dim: Annotated[int, Meta(gt=0, le=2**16, description="Channels per head.")]
    channel_kernel: Annotated[Size, Meta(description="Positions that the convolution of each channel by itself sees.")]
    head_kernel: Annotated[Size, Meta(description="Positions that the convolution within each head sees.")]
    bias: Annotated[bool, Meta(description="Whether the projections have biases.")] = False
    window: Annotated[
        Size | None, Meta(description="Positions that a query sees, its own included; all earlier ones unless stated.")
    ] = None

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Equal groups, value channels in two halves, and positions that fit the heads."""
        if self.heads % self.kv_heads:
            yield Finding(
                "E201",
                ("attention", "kv_heads"),
                f"{self.heads} query heads cannot share {self.kv_heads} key/value heads in equal groups",
                f"choose a divisor of {self.heads}",
            )
        if self.kv_heads * self.head_dim % 2:
            yield Finding(
                "E201",
                ("attention", "head_dim"),
                f"{self.kv_heads * self.head_dim} value channels cannot be halved",
                "choose an even number",
            )
        if around.position is not None:
            yield from around.position.check(replace(around, head_dim=self.head_dim))

    def build(self, around: Settled) -> Convolved:
        """The attention that the fields declare."""
        rope = around.position.build(self.head_dim, around.context) if around.position else None
        return Convolved(self, around.hidden_size, rope)


class Convolved(MixerPart, frozen=True):
    """Attention of `heads` queries over `kv_heads` keys and values, convolved before they meet."""

    fields: ConvolvedFields
    hidden_size: int
    rope: Rope | None

    kind = "convolved"
    bounded_logits = True

    @property
    def shape(self) -> Heads:
        """How queries share keys and values."""
        return Heads(self.fields.heads, self.fields.kv_heads, self.fields.head_dim)

    @property
    def window(self) -> int | None:
        """Positions that a query sees at most."""
        return self.fields.window

    @property
    def q_width(self) -> int:
        """Channels of all queries."""
        return self.fields.heads * self.fields.head_dim

    @property
    def kv_width(self) -> int:
        """Channels of all keys, and of all values."""
        return self.fields.kv_heads * self.fields.head_dim

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, both halves of v, o; taps [channels, kernel], [channels, head_dim, kernel]; a number per key head."""
        fields, convolved = self.fields, self.q_width + self.kv_width
        sizes = {"q": self.q_width, "k": self.kv_width, "v": self.kv_width // 2, "v_before": self.kv_width // 2}
        inward = (linear(name, size, self.hidden_size, fields.bias, "attention") for name, size in sizes.items())
        return (
            *(tensor for pair in inward for tensor in pair),
            Tensor("channel_conv.weight", (convolved, fields.channel_kernel), "attention"),
            Tensor("channel_conv.bias", (convolved,), "attention"),
            Tensor("head_conv.weight", (convolved, fields.head_dim, fields.head_kernel), "attention"),
            Tensor("head_conv.bias", (convolved,), "attention"),
            Tensor("key_scale", (fields.kv_heads,), "attention"),
            *linear("o", self.hidden_size, self.q_width, fields.bias, "attention"),
        )

    def caches(self) -> tuple[Cache, ...]:
        """Keys and values; the inputs of both convolutions; the half of the values that waits for the next position."""
        rows, window = 2 * self.kv_width, self.fields.window
        reach = self.fields.channel_kernel - 1 + self.fields.head_kernel - 1
        return (
            SlidingCache(rows, window) if window else FullCache(rows),
            ReachCache(self.q_width + self.kv_width, reach),
            ReachCache(self.kv_width // 2, 1),
        )

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps."""
        return 2 * sum(tensor.size for tensor in self.tensors() if len(tensor.shape) > 1)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values: 4 × heads × head_dim per key."""
        return 4 * self.q_width * keys(self.fields.window)
