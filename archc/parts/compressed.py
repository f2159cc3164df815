"""Attention over a window and over compressed stretches of what lies further back (DeepSeek-V4, 2026).

One narrow projection is key and value at once, for all heads. Behind the window, every `rate` positions are condensed
into one entry, a sum weighed by gates; an indexer may choose among the entries. The output is projected in groups, by
low rank (transformers 5.24, models/deepseek_v4/modeling_deepseek_v4.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.attention_sections import Sinks
from archc.parts.base import (
    Fields,
    Finding,
    Heads,
    Keys,
    MixerPart,
    PartFields,
    Positive,
    Settled,
    Size,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.caches import Cache, CompressedCache, Exact, SharedSlidingCache, SlidingCache
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.position import Rope


class EntryIndexerFields(Fields, frozen=True, kw_only=True):
    """`attention.compression.indexer`: a query meets only the entries that it chooses."""

    top_k: Annotated[Size, Meta(description="Entries that a query keeps.")]
    heads: Annotated[
        Size, Meta(description="Index query heads; their keys are entries of their own, made in the same way.")
    ]
    head_dim: Annotated[Size, Meta(description="Channels of an index head.")]


class CompressionFields(Fields, frozen=True, kw_only=True):
    """`attention.compression`: entries for stretches of positions."""

    rate: Annotated[Size, Meta(description="Positions that are condensed into one entry.")]
    overlap: Annotated[
        bool, Meta(description="Whether an entry also takes in the stretch before its own, by projections for it.")
    ] = False
    indexer: Annotated[EntryIndexerFields | None, Meta(description="Chooses the entries that a query meets.")] = None

    @property
    def series(self) -> int:
        """Projections of a position: one for each entry that it takes part in."""
        return 2 if self.overlap else 1

    def makers(self, hidden_size: int, width: int, norm: Norm) -> Iterator[Tensor]:
        """What makes entries of `width` channels: numbers, gates, a bias by place in the stretch, and a norm."""
        for name in ("kv", "gate"):
            yield from linear(name, self.series * width, hidden_size, False, "attention")
        yield Tensor("position_bias", (self.rate, self.series * width), "attention")
        yield from replace(norm, size=width).tensors("norm")


class CompressedFields(PartFields, frozen=True, kw_only=True):
    """`attention: {kind: compressed}`."""

    kind: Literal["compressed"]
    heads: Annotated[Size, Meta(description="Query heads; all share one key, which is the value as well.")]
    head_dim: Annotated[int, Meta(gt=0, le=2**16, description="Channels of a query, and of the shared key.")]
    q_rank: Annotated[Size, Meta(description="Channels of the latent of queries.")]
    window: Annotated[Size, Meta(description="Positions that a query sees as they are, its own included.")]
    output_groups: Annotated[Size, Meta(description="Groups of heads whose outputs are projected on their own.")]
    output_rank: Annotated[Size, Meta(description="Channels that the output of each group is narrowed to.")]
    query_norm: Annotated[InnerNormFields | None, Meta(description="A norm on queries, per head.")] = None
    scale: Annotated[
        Positive | None, Meta(description="Multiplies query-key products; head_dim^-0.5 unless stated.")
    ] = None
    sinks: Annotated[Sinks, Meta(description="A learned logit per head that takes weight from all keys.")] = "none"
    rotates: Annotated[
        Literal["first", "last"],
        Meta(description="Which channels of a head turn, where not all of them do. Those of the output turn back."),
    ] = "first"
    compression: Annotated[
        CompressionFields | None,
        Meta(description="Entries for what lies behind the window, which nothing remembers without them."),
    ] = None

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Equal groups, and positions that fit the heads."""
        if around.position is not None:
            yield from around.position.check(replace(around, head_dim=self.head_dim))
        if self.heads * self.head_dim % self.output_groups:
            yield Finding(
                "E201",
                ("attention", "output_groups"),
                f"{self.heads} heads of {self.head_dim} channels cannot stand in {self.output_groups} equal groups",
                f"choose a divisor of {self.heads}",
            )

    def build(self, around: Settled) -> CompressedAttention:
        """The attention that the fields declare."""
        position, queries = around.position, self.query_norm
        return CompressedAttention(
            fields=self,
            hidden_size=around.hidden_size,
            scale=self.scale or self.head_dim**-0.5,
            rope=position.build(self.head_dim, around.context) if position else None,
            q_latent_norm=around.norm.build(self.q_rank),
            query_norm=queries.build(around.norm, self.head_dim) if queries else None,
            key_norm=around.norm.build(self.head_dim),
        )


class CompressedAttention(MixerPart, frozen=True):
    """Attention of `heads` queries over one shared key in a window, and over entries."""

    fields: CompressedFields
    hidden_size: int
    scale: float
    rope: Rope | None
    q_latent_norm: Norm
    query_norm: Norm | None
    key_norm: Norm

    kind = "compressed"

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the arithmetic of entries counts."""
        if self.fields.compression is None:
            return ()
        return (
            "an entry of compressed attention is met by every query from the end of its stretch on, or by those that "
            "choose it; weighing positions into entries is left out",
        )

    @property
    def shape(self) -> Heads:
        """All heads share one key."""
        return Heads(self.fields.heads, 1, self.fields.head_dim)

    @property
    def bounded_logits(self) -> bool:
        """Keys are normed; whether queries are as well."""
        return self.query_norm is not None

    @property
    def window(self) -> int | None:
        """Positions that a query sees at most; None where entries reach further back."""
        return self.fields.window if self.fields.compression is None else None

    @property
    def _matrices(self) -> dict[str, tuple[int, int]]:
        """Output and input features of every projection; the first of the output is block-diagonal."""
        f = self.fields
        width = f.heads * f.head_dim
        return {
            "q_down": (f.q_rank, self.hidden_size),
            "q_up": (width, f.q_rank),
            "kv": (f.head_dim, self.hidden_size),
            "o_down": (f.output_groups * f.output_rank, width // f.output_groups),
            "o_up": (self.hidden_size, f.output_groups * f.output_rank),
        }

    def tensors(self) -> tuple[Tensor, ...]:
        """The projections [out, in], norms and sinks, then what makes entries, and the indexer's own."""
        f, tensors = self.fields, list[Tensor]()
        for name, (out, into) in self._matrices.items():
            tensors += linear(name, out, into, False, "attention")
        norms = (("q_latent_norm", self.q_latent_norm), ("q_norm", self.query_norm), ("kv_norm", self.key_norm))
        for norm_name, norm in norms:
            tensors += norm.tensors(norm_name) if norm else ()
        if f.sinks != "none":
            tensors.append(Tensor("sinks", (f.heads,), "attention"))
        if f.compression:
            made = f.compression.makers(self.hidden_size, f.head_dim, self.key_norm)
            tensors += [tensor.inside("compressor") for tensor in made]
            tensors += [tensor.inside("indexer") for tensor in self._indexer(f.compression)]
        return tuple(tensors)

    def _indexer(self, compression: CompressionFields) -> Iterator[Tensor]:
        """Entries for the index, its queries [heads·head_dim, q_rank], and a weight per head [heads, D]."""
        indexer = compression.indexer
        if indexer is None:
            return
        yield from compression.makers(self.hidden_size, indexer.head_dim, self.key_norm)
        yield from linear("q", indexer.heads * indexer.head_dim, self.fields.q_rank, False, "attention")
        yield from linear("weights", indexer.heads, self.hidden_size, False, "attention")

    def caches(self) -> tuple[Cache, ...]:
        """head_dim numbers per position of the window, and per entry; entries of the index beside them."""
        f = self.fields
        if f.compression is None:
            return (SharedSlidingCache(f.head_dim, f.window),)
        rate, overlap, indexer = f.compression.rate, f.compression.overlap, f.compression.indexer
        widths = (f.head_dim, *([indexer.head_dim] if indexer else []))
        return (SlidingCache(f.head_dim, f.window), *(CompressedCache(width, rate, overlap) for width in widths))

    def linear_flops(self) -> int:
        """Two operations per weight of every projection."""
        projections = [t for t in self.tensors() if t.name.endswith(".weight") and len(t.shape) == 2]
        return 2 * sum(prod(tensor.shape) for tensor in projections)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values: 4 × heads × head_dim for each key of the window and each entry met.

        The index scores cost 2 × heads × head_dim of the indexer for every entry. Softmax and mask are left out.
        """
        f = self.fields
        met = keys(f.window)
        scoring: Exact = 0
        if f.compression is not None:
            rate, indexer = f.compression.rate, f.compression.indexer
            met += keys.entries(rate, indexer.top_k if indexer else None)
            scoring = 2 * indexer.heads * indexer.head_dim * keys.entries(rate) if indexer else 0
        return 4 * f.heads * f.head_dim * met + scoring
