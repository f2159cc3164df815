"""Lightning attention: linear attention whose heads decay at fixed rates (Qin et al. 2024; MiniMax-01, 2025)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Keys, PartFields, Settled, Size, Tensor
from archc.parts.caches import Cache, Exact, StateCache
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.recurrent import Recurrent, projection


class LightningFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: lightning}`: the output of all heads is normed, then multiplied by a sigmoid gate."""

    kind: Literal["lightning"]
    heads: Annotated[Size, Meta(description="Heads. Their rates of decay fall with head and depth, and are stored.")]
    head_dim: Annotated[Size, Meta(description="Channels of a query, of a key and of a value head.")]
    activation: Annotated[Activation, Meta(description=f"On queries, keys and values. {ACTIVATION_DOC}")]
    chunk: Annotated[
        Size, Meta(description="Positions that are computed at once; checkpoints hold the decays within a chunk.")
    ]
    output_norm: Annotated[
        InnerNormFields, Meta(description="The norm over the output of all heads, before the gate.")
    ] = InnerNormFields()

    def build(self, around: Settled) -> Lightning:
        """The mixer that the fields declare."""
        return Lightning(
            hidden_size=around.hidden_size,
            heads=self.heads,
            head_dim=self.head_dim,
            activation=self.activation,
            chunk=self.chunk,
            output_norm=self.output_norm.build(around.norm, self.heads * self.head_dim),
        )


class Lightning(Recurrent, frozen=True):
    """`heads` states of [head_dim, head_dim] numbers."""

    hidden_size: int
    heads: int
    head_dim: int
    activation: Activation
    chunk: int
    output_norm: Norm

    kind = "lightning"

    @property
    def width(self) -> int:
        """Channels of all queries, of all keys, and of all values."""
        return self.heads * self.head_dim

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v, gate, norm and o; as buffers, a rate per head and its powers from and to every place in a chunk."""
        buffers = {
            "rate": (self.heads,),
            "query_decay": (self.heads, self.chunk),
            "key_decay": (self.heads, self.chunk),
            "inner_decay": (self.heads, self.chunk, self.chunk),
        }
        return (
            *(tensor for name in ("q", "k", "v", "gate") for tensor in projection(name, self.width, self.hidden_size)),
            *self.output_norm.tensors("output_norm"),
            *projection("o", self.hidden_size, self.width),
            *(Tensor(name, shape, "attention", buffer=True) for name, shape in buffers.items()),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The states of the heads."""
        return (StateCache(self.width * self.head_dim),)

    def linear_flops(self) -> int:
        """Five projections, two operations per weight."""
        return 2 * 5 * self.hidden_size * self.width

    def mixing_flops(self, keys: Keys) -> Exact:
        """Five operations per number of the state, whatever the context.

        S ← λ·S + k·vᵀ; y = Sᵀq (transformers 5.24, models/minimax/modeling_minimax.py): one for the decay, two to
        write, two to read.
        """
        del keys
        return 5 * self.width * self.head_dim
