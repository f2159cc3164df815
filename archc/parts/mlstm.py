"""mLSTM: a matrix memory with exponential gates (xLSTM; Beck et al. 2024)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Keys, PartFields, Positive, Settled, Size, Tensor
from archc.parts.caches import Cache, Exact, StateCache
from archc.parts.norm import Norm
from archc.parts.recurrent import Recurrent, projection


class MlstmFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: mlstm}`: the heads' output passes through a layernorm per head, then a sigmoid gate."""

    kind: Literal["mlstm"]
    heads: Annotated[Size, Meta(description="Heads, each with one input and one forget gate.")]
    key_dim: Annotated[Size, Meta(description="Channels of a query and of a key head.")]
    value_dim: Annotated[Size, Meta(description="Channels of a value head.")]
    bias: Annotated[
        bool, Meta(description="Whether all projections have a bias; those of the two gates per head always have.")
    ] = False
    gate_softcap: Annotated[
        Positive | None, Meta(description="Input and forget gates become softcap·tanh(gate / softcap) first.")
    ] = None
    eps: Annotated[Positive, Meta(description="Added to the normaliser of the memory's answer.")] = 1e-6

    def build(self, around: Settled) -> Mlstm:
        """The mixer that the fields declare."""
        width = self.heads * self.value_dim
        return Mlstm(
            hidden_size=around.hidden_size,
            heads=self.heads,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            bias=self.bias,
            gate_softcap=self.gate_softcap,
            eps=self.eps,
            output_norm=Norm("layernorm", width, around.norm.eps, "plain", self.bias),
        )


class Mlstm(Recurrent, frozen=True):
    """`heads` memories of [key_dim, value_dim] numbers, with a normaliser of key_dim numbers and an exponent each."""

    hidden_size: int
    heads: int
    key_dim: int
    value_dim: int
    bias: bool
    gate_softcap: float | None
    eps: float
    output_norm: Norm

    kind = "mlstm"

    @property
    def key_width(self) -> int:
        """Channels of all queries, and of all keys."""
        return self.heads * self.key_dim

    @property
    def value_width(self) -> int:
        """Channels of all values, and of the output gate."""
        return self.heads * self.value_dim

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v, output gate, input and forget gate per head, norm, o."""
        wide = {"q": self.key_width, "k": self.key_width, "v": self.value_width, "gate": self.value_width}
        return (
            *(
                tensor
                for name, width in wide.items()
                for tensor in projection(name, width, self.hidden_size, self.bias)
            ),
            *projection("input", self.heads, self.hidden_size, True),
            *projection("forget", self.heads, self.hidden_size, True),
            *self.output_norm.tensors("output_norm"),
            *projection("o", self.hidden_size, self.value_width, self.bias),
        )

    def caches(self) -> tuple[Cache, ...]:
        """Memory, normaliser, and the exponent that both are scaled by."""
        return (StateCache(self.heads * (self.key_dim * self.value_dim + self.key_dim + 1)),)

    def linear_flops(self) -> int:
        """Two operations per weight of the projections."""
        return 2 * self.hidden_size * (2 * self.key_width + 3 * self.value_width + 2 * self.heads)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Five operations per number of the memory and of the normaliser, whatever the context.

        C ← f·C + (i·k)·vᵀ, n ← f·n + i·k, y = Cᵀq / |nᵀq| (Beck et al. 2024, section 2.3): one for the decay, two to
        write, two to read. Exponentials and the division are left out.
        """
        del keys
        return 5 * self.key_width * (self.value_dim + 1)
