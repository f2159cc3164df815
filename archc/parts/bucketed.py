"""Attention within chunks of positions, or of positions that hash alike (Reformer, Kitaev et al. 2020).

From transformers 5.24, models/reformer/modeling_reformer.py, LocalSelfAttention and LSHSelfAttention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Heads, Keys, MixerPart, PartFields, Settled, Size, Tensor, linear
from archc.parts.caches import Cache, Exact, LatentCache, MaskedCache


class BucketedFields(PartFields, frozen=True, kw_only=True):
    """`attention: {kind: bucketed}`.

    Positions are sorted and cut into chunks; a query sees the keys of its own chunk and of some before it, up to its
    own position. By position they are sorted as they stand. By hash they are sorted by bucket, in each of several
    rounds, whose outputs are weighed by their sums: queries are their own keys, brought to the length 1, and a bucket
    is the largest of the products with random vectors and their negatives.
    """

    kind: Literal["bucketed"]
    heads: Annotated[Size, Meta(description="Heads.")]
    head_dim: Annotated[int, Meta(gt=0, le=2**16, description="Channels per head.")]
    sorted_by: Annotated[Literal["position", "hash"], Meta(description="What brings positions into chunks.")]
    chunk: Annotated[Size, Meta(description="Positions of a chunk.")]
    chunks_before: Annotated[int, Meta(ge=0, le=2**16, description="Chunks before its own that a query sees.")] = 1
    rounds: Annotated[Size, Meta(description="Rounds of hashing.")] = 1
    buckets: Annotated[Size | None, Meta(description="Buckets of a round; made for the length unless stated.")] = None

    def build(self, around: Settled) -> Bucketed:
        """The attention that the fields declare."""
        return Bucketed(self, around.hidden_size)


class Bucketed(MixerPart, frozen=True):
    """Heads that attend within chunks."""

    fields: BucketedFields
    hidden_size: int

    kind = "bucketed"

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the arithmetic counts, where the reference does more."""
        return (
            "attention in chunks is counted as over the last keys, as many as its chunks hold; hashing and sorting are "
            "not counted, nor are keys and values that are made again of cached inputs",
        )

    @property
    def shape(self) -> Heads:
        """Every head has its own keys."""
        return Heads(self.fields.heads, self.fields.heads, self.fields.head_dim)

    @property
    def hashed(self) -> bool:
        """Whether positions far apart can share a chunk."""
        return self.fields.sorted_by == "hash"

    @property
    def reach(self) -> int:
        """Keys of the chunks that a query sees."""
        return self.fields.chunk * (1 + self.fields.chunks_before)

    @property
    def window(self) -> int | None:
        """Positions that a query sees at most, where they are the last ones."""
        return None if self.hashed else self.reach

    @property
    def q_width(self) -> int:
        """Channels of all heads."""
        return self.fields.heads * self.fields.head_dim

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k (the same by hash), v and o."""
        return tuple(self._tensors())

    def _tensors(self) -> Iterator[Tensor]:
        for name in ("qk", "v") if self.hashed else ("q", "k", "v"):
            yield from linear(name, self.q_width, self.hidden_size, False, "attention")
        yield from linear("o", self.hidden_size, self.q_width, False, "attention")

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of all positions, or of those in reach."""
        return (LatentCache(self.hidden_size) if self.hashed else MaskedCache(self.hidden_size, self.reach),)

    def linear_flops(self) -> int:
        """The projections, two operations per weight."""
        return 2 * sum(tensor.size for tensor in self.tensors())

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values: 4 × heads × head_dim per key, in every round."""
        return 4 * self.q_width * self.fields.rounds * keys(self.reach)
