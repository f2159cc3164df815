"""Gated short convolution: a causal convolution between two gates, and nothing else remembered.

Source: transformers 5.24, models/lfm2/modeling_lfm2.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Keys, PartFields, Settled, Size, Tensor
from archc.parts.caches import Cache, ConvCache, Exact
from archc.parts.recurrent import Recurrent, convolution, projection


class ShortConvFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: short_conv}`: out(c · conv(b · x)), with b, c and x projected from the input."""

    kind: Literal["short_conv"]
    kernel: Annotated[Size, Meta(description="Positions that the causal convolution sees.")]
    bias: Annotated[bool, Meta(description="Whether the projections and the convolution have a bias.")] = False

    def build(self, around: Settled) -> ShortConv:
        """The mixer that the fields declare."""
        return ShortConv(around.hidden_size, self.kernel, self.bias)


class ShortConv(Recurrent, frozen=True):
    """A convolution over `kernel` positions, as wide as the stream."""

    hidden_size: int
    kernel: int
    bias: bool

    kind = "short_conv"

    def tensors(self) -> tuple[Tensor, ...]:
        """b, c and x in one projection [3D, D]; taps [D, kernel]; the way back [D, D]."""
        return (
            *projection("in", 3 * self.hidden_size, self.hidden_size, self.bias),
            *convolution(self.hidden_size, self.kernel, self.bias),
            *projection("out", self.hidden_size, self.hidden_size, self.bias),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution."""
        return (ConvCache(self.hidden_size, self.kernel),)

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps."""
        return 2 * self.hidden_size * (4 * self.hidden_size + self.kernel)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Positions meet in the convolution alone, whose taps are counted as weights."""
        del keys
        return 0
