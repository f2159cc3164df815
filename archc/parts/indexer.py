"""Lightning indexer: a narrow attention that chooses the keys which the wide one meets (DeepSeek-V3.2, 2025).

Index heads score every earlier key; the query keeps the `top_k` best, or the best blocks of keys. The scores
themselves are not used further (transformers 5.24, models/deepseek_v32/modeling_deepseek_v32.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Keys, Settled, Size, Tensor, linear
from archc.parts.caches import Cache, Exact, IndexCache
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.position import Pairing

INDEX_CONVENTION = "an indexer meets every earlier key, and the attention behind it the chosen ones"


class IndexerFields(Fields, frozen=True, kw_only=True):
    """`attention.indexer`: a query meets only the keys that it chooses."""

    top_k: Annotated[Size, Meta(description="Keys that a query keeps; blocks of keys, where block is stated.")]
    heads: Annotated[Size, Meta(description="Index query heads; all share one index key.")]
    head_dim: Annotated[Size, Meta(description="Channels of an index head.")]
    indices: Annotated[
        Literal["own", "reused"],
        Meta(
            description="reused: the keys are those that the last layer before it with an indexer of its own has "
            "chosen; nothing is computed or stored here."
        ),
    ] = "own"
    score: Annotated[
        Literal["weighted_relu", "relu", "product"],
        Meta(
            description="weighted_relu: the sum over heads of w·relu(q·k), with weights projected from the input; "
            "relu: the sum of relu(q·k); product: q·k, each head choosing for its own group of query heads."
        ),
    ] = "weighted_relu"
    key_norm: Annotated[InnerNormFields | None, Meta(description="A norm on index keys.")] = None
    query_norm: Annotated[InnerNormFields | None, Meta(description="A norm on index queries, per head.")] = None
    pairing: Annotated[Pairing | None, Meta(description="As position.pairing, which is the default.")] = None
    rotates: Annotated[
        Literal["first", "last"], Meta(description="Which channels of an index head turn, where not all of them do.")
    ] = "first"
    block: Annotated[
        Size | None, Meta(description="Keys are chosen in blocks of so many neighbours, as block_score says.")
    ] = None
    block_score: Annotated[
        Literal["best", "mean_key"],
        Meta(
            description="best: a block is as good as its best key; mean_key: it is scored once, by the mean of its "
            "keys before their norm and rotation, when it is whole; what comes after the last whole block is always "
            "seen."
        ),
    ] = "best"
    local_blocks: Annotated[
        int,
        Meta(
            ge=0,
            le=2**16,
            description="Blocks that are always among those chosen: the query's own and those just before it.",
        ),
    ] = 0

    def build(self, around: Settled, query_width: int) -> Indexer:
        """The indexer that the fields declare; its queries are projected from `query_width` channels."""
        keys, queries = self.key_norm, self.query_norm
        return Indexer(
            fields=self,
            hidden_size=around.hidden_size,
            query_width=query_width,
            key_norm=keys.build(around.norm, self.head_dim) if keys else None,
            query_norm=queries.build(around.norm, self.head_dim) if queries else None,
        )


class Indexer(Struct, frozen=True):
    """Index heads over one index key per position."""

    fields: IndexerFields
    hidden_size: int
    query_width: int
    key_norm: Norm | None
    query_norm: Norm | None

    @property
    def chosen(self) -> int:
        """Keys that a query meets at most."""
        block = self.fields.block or 1
        return self.fields.top_k * block + (block - 1 if self._pooled else 0)

    @property
    def _pooled(self) -> bool:
        return self.fields.block_score == "mean_key"

    @property
    def _weighted(self) -> bool:
        return self.fields.score == "weighted_relu"

    def tensors(self) -> tuple[Tensor, ...]:
        """q [heads·head_dim, query_width], k [head_dim, D], their norms, and weights [heads, D]."""
        fields = self.fields
        if fields.indices == "reused":
            return ()
        tensors = [
            *linear("q", fields.heads * fields.head_dim, self.query_width, False, "attention"),
            *linear("k", fields.head_dim, self.hidden_size, False, "attention"),
        ]
        tensors += self.key_norm.tensors("k_norm") if self.key_norm else ()
        tensors += self.query_norm.tensors("q_norm") if self.query_norm else ()
        if self._weighted:
            tensors += linear("weights", fields.heads, self.hidden_size, False, "attention")
        return tuple(tensor.inside("indexer") for tensor in tensors)

    def caches(self) -> tuple[Cache, ...]:
        """One index key per position."""
        return (IndexCache(self.fields.head_dim),) if self.fields.indices == "own" else ()

    def linear_flops(self) -> int:
        """The projections, two operations per weight."""
        return 2 * sum(tensor.size for tensor in self.tensors() if len(tensor.shape) == 2)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores, 2 × heads × head_dim per key or block scored, and their weighted sum, 2 × heads.

        Choosing the best is left out.
        """
        fields = self.fields
        if fields.indices == "reused":
            return 0
        scored = keys.entries(fields.block or 1) if self._pooled else keys()
        return 2 * fields.heads * (fields.head_dim + self._weighted) * scored
