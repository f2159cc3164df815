"""RG-LRU: a gated linear recurrence of single channels (Griffin; De et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Finding, Keys, PartFields, Settled, Size, Surroundings, Tensor
from archc.parts.caches import Cache, ConvTailCache, Exact, StateCache
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.recurrent import Recurrent, convolution, projection, vector


class RgLruFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: rg_lru}`: a convolution and the recurrence, multiplied by an activated branch beside them."""

    kind: Literal["rg_lru"]
    width: Annotated[Size, Meta(description="Channels of the recurrence, and of the branch beside it.")]
    blocks: Annotated[
        Size, Meta(description="Equal groups of channels; the gates of a channel see its own group alone.")
    ]
    kernel: Annotated[Size, Meta(description="Positions that the causal convolution before the recurrence sees.")]
    activation: Annotated[Activation, Meta(description=f"On the branch beside the recurrence. {ACTIVATION_DOC}")]

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Groups are equal."""
        del around
        if self.width % self.blocks:
            yield Finding(
                "E203",
                ("mixer", "blocks"),
                f"{self.width} channels cannot be {self.blocks} equal groups",
                "choose a divisor of mixer.width",
            )

    def build(self, around: Settled) -> RgLru:
        """The mixer that the fields declare."""
        return RgLru(around.hidden_size, self.width, self.blocks, self.kernel, self.activation)


class RgLru(Recurrent, frozen=True):
    """A number per channel, whose decay and whose input are gated by the channels of its group."""

    hidden_size: int
    width: int
    blocks: int
    kernel: int
    activation: Activation

    kind = "rg_lru"

    def tensors(self) -> tuple[Tensor, ...]:
        """Two projections in, taps, two gates [blocks, W/blocks, W/blocks], a decay per channel, one projection out."""
        block = self.width // self.blocks
        return (
            *projection("x", self.width, self.hidden_size, True),
            *projection("y", self.width, self.hidden_size, True),
            *convolution(self.width, self.kernel, True),
            vector("input_gate.weight", self.blocks, block, block),
            vector("input_gate.bias", self.width),
            vector("decay_gate.weight", self.blocks, block, block),
            vector("decay_gate.bias", self.width),
            vector("decay", self.width),
            *projection("out", self.hidden_size, self.width, True),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution, and a number per channel."""
        return (ConvTailCache(self.width, self.kernel), StateCache(self.width))

    def linear_flops(self) -> int:
        """Two operations per weight of the projections, the taps and the gates."""
        per_channel = 3 * self.hidden_size + self.kernel + 2 * (self.width // self.blocks)
        return 2 * self.width * per_channel

    def mixing_flops(self, keys: Keys) -> Exact:
        """Two operations per channel, whatever the context: h ← a·h + x (De et al. 2024, section 2.4)."""
        del keys
        return 2 * self.width
