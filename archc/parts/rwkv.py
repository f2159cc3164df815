"""RWKV-4: a recurrence with a decay and a bonus per channel, and its feed-forward (Peng et al. 2023).

Both mix every channel of the current token with that of the token before.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import FfnPart, Keys, PartFields, Settled, Size, Tensor, linear
from archc.parts.caches import Cache, ConvTailCache, Exact, StateCache
from archc.parts.recurrent import Recurrent, projection, vector


class RwkvFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: rwkv}`."""

    kind: Literal["rwkv"]
    width: Annotated[Size, Meta(description="Channels of the recurrence.")]

    def build(self, around: Settled) -> Rwkv:
        """The mixer that the fields declare."""
        return Rwkv(around.hidden_size, self.width)


class Rwkv(Recurrent, frozen=True):
    """Weighted means of values, with weights exp(k) that decay with distance."""

    hidden_size: int
    width: int

    kind = "rwkv"

    def tensors(self) -> tuple[Tensor, ...]:
        """Decay and bonus per channel, a share of the current token per channel of three inputs, four projections."""
        return (
            vector("decay", self.width),
            vector("bonus", self.width),
            *(vector(f"{name}_share", self.hidden_size) for name in ("key", "value", "receptance")),
            *(
                tensor
                for name in ("key", "value", "receptance")
                for tensor in projection(name, self.width, self.hidden_size)
            ),
            *projection("output", self.hidden_size, self.width),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The token before, and per channel a numerator, a denominator and the exponent that both are scaled by."""
        return (ConvTailCache(self.hidden_size, 2), StateCache(3 * self.width))

    def linear_flops(self) -> int:
        """Four projections, two operations per weight."""
        return 2 * 4 * self.hidden_size * self.width

    def mixing_flops(self, keys: Keys) -> Exact:
        """Eleven operations per channel, whatever the context.

        The numerator is decayed, a product is formed and added (3), the denominator decayed and added to (2); the same
        five with the bonus make the output, which is one quotient (transformers 5.24, models/rwkv/modeling_rwkv.py,
        rwkv_linear_attention_cpu). Exponentials and maxima are left out.
        """
        del keys
        return 11 * self.width


class ChannelMixFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: channel_mix}`: sigmoid(receptance(x)) · down(relu(up(x))²), each x mixed with the token before."""

    kind: Literal["channel_mix"]
    width: Annotated[Size, Meta(description="Channels between the matrices.")]

    def build(self, around: Settled) -> ChannelMix:
        """The feed-forward that the fields declare."""
        return ChannelMix(around.hidden_size, self.width)


class ChannelMix(FfnPart, frozen=True):
    """A feed-forward of `width` channels that also sees the token before."""

    hidden_size: int
    width: int

    kind = "channel_mix"

    def tensors(self) -> tuple[Tensor, ...]:
        """A share of the current token per channel of two inputs; up, receptance and down."""
        return (
            Tensor("up_share", (self.hidden_size,), "ffn"),
            Tensor("receptance_share", (self.hidden_size,), "ffn"),
            *linear("up", self.width, self.hidden_size, False, "ffn"),
            *linear("receptance", self.hidden_size, self.hidden_size, False, "ffn"),
            *linear("down", self.hidden_size, self.width, False, "ffn"),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The token before."""
        return (ConvTailCache(self.hidden_size, 2),)

    def linear_flops(self) -> int:
        """Two operations per weight of the matrices; mixing two tokens channel by channel is left out."""
        return 2 * self.hidden_size * (2 * self.width + self.hidden_size)
