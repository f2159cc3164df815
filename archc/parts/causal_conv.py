"""A causal convolution of each channel by itself, as a branch (transformers 5.24, models/inkling, models/inkling2)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Keys, PartFields, Settled, Size, Tensor
from archc.parts.caches import Cache, ConvCache, Exact
from archc.parts.recurrent import Recurrent, convolution


class CausalConvFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: causal_conv}`: x + conv(x)."""

    kind: Literal["causal_conv"]
    kernel: Annotated[Size, Meta(description="Positions that the convolution sees.")]
    scaled: Annotated[bool, Meta(description="Whether the sum is divided by sqrt(kernel + 1).")] = False

    def build(self, around: Settled) -> CausalConv:
        """The mixer that the fields declare."""
        return CausalConv(around.hidden_size, self.kernel, self.scaled)


class CausalConv(Recurrent, frozen=True):
    """A convolution over `kernel` positions, as wide as the stream."""

    hidden_size: int
    kernel: int
    scaled: bool

    kind = "causal_conv"

    def tensors(self) -> tuple[Tensor, ...]:
        """Taps [D, kernel]."""
        return convolution(self.hidden_size, self.kernel, False)

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution."""
        return (ConvCache(self.hidden_size, self.kernel),)

    def linear_flops(self) -> int:
        """Two operations per tap."""
        return 2 * self.hidden_size * self.kernel

    def mixing_flops(self, keys: Keys) -> Exact:
        """Positions meet in the convolution alone, whose taps are counted as weights."""
        del keys
        return 0
