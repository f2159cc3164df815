"""Delta rules: linear attention that corrects what its state holds under a key, and forgets.

Gated DeltaNet (Yang et al. 2024) decays a head as a whole; Kimi delta attention (Kimi Linear, 2025) every channel of a
key by itself. Queries and keys are brought to length one, queries then divided by sqrt of a key head's channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Finding, Keys, PartFields, Positive, Settled, Size, Surroundings, Tensor
from archc.parts.caches import Cache, ConvCache, Exact, StateCache
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.recurrent import Recurrent, convolution, projection, vector


class _DeltaFields(PartFields, frozen=True, kw_only=True):
    """Fields that both delta rules have."""

    kernel: Annotated[Size, Meta(description="Positions that the causal convolution on queries, keys and values sees.")]
    activation: Annotated[Activation, Meta(description=f"After the convolution. {ACTIVATION_DOC}")] = "silu"
    write_scale: Annotated[
        Positive,
        Meta(description="Multiplies the strength of a correction, a sigmoid; 2 lets the state change its sign."),
    ] = 1.0
    gate: Annotated[
        Literal["silu", "sigmoid"], Meta(description="Turns the output gate into a factor on the normed output.")
    ]
    output_norm: Annotated[
        InnerNormFields, Meta(description="The norm of every value head's output, before the gate.")
    ] = InnerNormFields()


class GatedDeltaFields(_DeltaFields, frozen=True, kw_only=True):
    """`mixer: {kind: gated_delta}`."""

    kind: Literal["gated_delta"]
    key_heads: Annotated[Size, Meta(description="Heads of queries and keys.")]
    value_heads: Annotated[
        Size, Meta(description="Heads of values; as many share a key head as there are more of them.")
    ]
    key_dim: Annotated[Size, Meta(description="Channels of a query and of a key head.")]
    value_dim: Annotated[Size, Meta(description="Channels of a value head.")]

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Value heads share key heads in equal groups."""
        del around
        if self.value_heads % self.key_heads:
            yield Finding(
                "E201",
                ("mixer", "key_heads"),
                f"{self.value_heads} value heads cannot share {self.key_heads} key heads in equal groups",
                f"choose a divisor of {self.value_heads}",
            )

    def build(self, around: Settled) -> GatedDelta:
        """The mixer that the fields declare."""
        return GatedDelta(
            hidden_size=around.hidden_size,
            key_heads=self.key_heads,
            value_heads=self.value_heads,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            kernel=self.kernel,
            activation=self.activation,
            write_scale=self.write_scale,
            gate=self.gate,
            output_norm=self.output_norm.build(around.norm, self.value_dim),
        )


class GatedDelta(Recurrent, frozen=True):
    """`value_heads` states of [key_dim, value_dim] numbers, each with one decay per token."""

    hidden_size: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    activation: Activation
    write_scale: float
    gate: Literal["silu", "sigmoid"]
    output_norm: Norm

    kind = "gated_delta"

    @property
    def key_width(self) -> int:
        """Channels of all queries, and of all keys."""
        return self.key_heads * self.key_dim

    @property
    def value_width(self) -> int:
        """Channels of all values, and of the gate."""
        return self.value_heads * self.value_dim

    @property
    def conv_width(self) -> int:
        """Channels of queries, keys and values, which pass through the convolution."""
        return 2 * self.key_width + self.value_width

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v, the gate, decay and strength per value head; taps; the decay's rate and bias; norm; output."""
        return (
            *projection("q", self.key_width, self.hidden_size),
            *projection("k", self.key_width, self.hidden_size),
            *projection("v", self.value_width, self.hidden_size),
            *projection("gate", self.value_width, self.hidden_size),
            *projection("decay", self.value_heads, self.hidden_size),
            *projection("write", self.value_heads, self.hidden_size),
            *convolution(self.conv_width, self.kernel, False),
            vector("a_log", self.value_heads),
            vector("dt_bias", self.value_heads),
            *self.output_norm.tensors("output_norm"),
            *projection("o", self.hidden_size, self.value_width),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution, and the states of the heads."""
        state = self.value_heads * self.key_dim * self.value_dim
        return (ConvCache(self.conv_width, self.kernel), StateCache(state))

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps."""
        into = self.conv_width + self.value_width + 2 * self.value_heads
        return 2 * (self.hidden_size * (into + self.value_width) + self.conv_width * self.kernel)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Seven operations per number of the state, whatever the context: see `delta_flops`."""
        del keys
        return delta_flops(self.value_heads, self.key_dim, self.value_dim)


class KdaFields(_DeltaFields, frozen=True, kw_only=True):
    """`mixer: {kind: kda}`."""

    kind: Literal["kda"]
    heads: Annotated[Size, Meta(description="Heads, each with a query, a key and a value.")]
    head_dim: Annotated[Size, Meta(description="Channels of a query, of a key and of a value head.")]
    decay_rank: Annotated[
        Size | None,
        Meta(description="Channels through which the decays are made; directly from the input unless stated."),
    ] = None
    gate_rank: Annotated[Size | None, Meta(description="The same for the output gate.")] = None
    decay_floor: Annotated[
        Annotated[float, Meta(lt=0)] | None,
        Meta(
            description="The logarithm of a decay is this times sigmoid(exp(a)·x); unless stated, -exp(a)·softplus(x)."
        ),
    ] = None

    def build(self, around: Settled) -> Kda:
        """The mixer that the fields declare."""
        return Kda(
            hidden_size=around.hidden_size,
            heads=self.heads,
            head_dim=self.head_dim,
            kernel=self.kernel,
            activation=self.activation,
            write_scale=self.write_scale,
            gate=self.gate,
            output_norm=self.output_norm.build(around.norm, self.head_dim),
            decay_rank=self.decay_rank,
            gate_rank=self.gate_rank,
            decay_floor=self.decay_floor,
        )


class Kda(Recurrent, frozen=True):
    """`heads` states of [head_dim, head_dim] numbers, every key channel of which decays by itself."""

    hidden_size: int
    heads: int
    head_dim: int
    kernel: int
    activation: Activation
    write_scale: float
    gate: Literal["silu", "sigmoid"]
    output_norm: Norm
    decay_rank: int | None
    gate_rank: int | None
    decay_floor: float | None

    kind = "kda"

    @property
    def width(self) -> int:
        """Channels of all queries, of all keys, and of all values."""
        return self.heads * self.head_dim

    def _made(self, name: str, rank: int | None) -> tuple[Tensor, ...]:
        if rank is None:
            return projection(name, self.width, self.hidden_size)
        return (*projection(f"{name}.down", rank, self.hidden_size), *projection(f"{name}.up", self.width, rank))

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v; taps; decay per channel, strength per head, gate; the decay's rate per head and bias; norm; o."""
        return (
            *projection("q", self.width, self.hidden_size),
            *projection("k", self.width, self.hidden_size),
            *projection("v", self.width, self.hidden_size),
            *convolution(3 * self.width, self.kernel, False),
            *self._made("decay", self.decay_rank),
            *projection("write", self.heads, self.hidden_size),
            *self._made("gate", self.gate_rank),
            vector("a_log", self.heads),
            vector("dt_bias", self.width),
            *self.output_norm.tensors("output_norm"),
            *projection("o", self.hidden_size, self.width),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution, and the states of the heads."""
        return (ConvCache(3 * self.width, self.kernel), StateCache(self.width * self.head_dim))

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps."""
        made = [*self._made("decay", self.decay_rank), *self._made("gate", self.gate_rank)]
        direct = self.hidden_size * (4 * self.width + self.heads) + 3 * self.width * self.kernel
        return 2 * (direct + sum(tensor.size for tensor in made))

    def mixing_flops(self, keys: Keys) -> Exact:
        """Seven operations per number of the state, whatever the context: see `delta_flops`."""
        del keys
        return delta_flops(self.heads, self.head_dim, self.head_dim)


def delta_flops(heads: int, key_dim: int, value_dim: int) -> int:
    """Operations per token of `heads` delta rules over states of [key_dim, value_dim] numbers.

    S ← a·S; S ← S + k·(β(v - Sᵀk))ᵀ; y = Sᵀq (transformers 5.24, models/qwen3_next/modeling_qwen3_next.py,
    torch_recurrent_gated_delta_rule): per number of S one for the decay, two to read under k, two to write, two to read
    under q.
    """
    return 7 * heads * key_dim * value_dim
