"""Mamba: a selective state space with a state per channel (Gu & Dao 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Finding, Keys, PartFields, Settled, Size, Surroundings, Tensor
from archc.parts.caches import Cache, ConvCache, Exact, StateCache
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.recurrent import Recurrent, convolution, projection, vector


class MambaFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: mamba}`."""

    kind: Literal["mamba"]
    width: Annotated[Size, Meta(description="Channels of the scan, and of the gate beside it.")]
    state: Annotated[Size, Meta(description="Numbers that every channel remembers.")]
    rank: Annotated[Size, Meta(description="Channels through which the time steps of all channels are made.")]
    kernel: Annotated[Size, Meta(description="Positions that the causal convolution before the scan sees.")]
    heads: Annotated[
        Size,
        Meta(description="Equal groups of channels, each with time steps, B and C made of its own channels alone."),
    ] = 1
    activation: Annotated[Activation, Meta(description=f"After the convolution. {ACTIVATION_DOC}")] = "silu"
    bias: Annotated[bool, Meta(description="Whether the projections into and out of the mixer have a bias.")] = False
    conv_bias: Annotated[bool, Meta(description="Whether the convolution has a bias.")] = True
    inner_norm: Annotated[
        InnerNormFields | None, Meta(description="Norms on the low-rank time steps, on B and on C.")
    ] = None

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Heads are equal."""
        del around
        if self.width % self.heads:
            yield Finding(
                "E203",
                ("mixer", "heads"),
                f"{self.width} channels cannot be {self.heads} equal heads",
                "choose a divisor of mixer.width",
            )

    def build(self, around: Settled) -> Mamba:
        """The mixer that the fields declare."""
        inner = self.inner_norm
        return Mamba(
            hidden_size=around.hidden_size,
            width=self.width,
            state=self.state,
            rank=self.rank,
            kernel=self.kernel,
            heads=self.heads,
            activation=self.activation,
            bias=self.bias,
            conv_bias=self.conv_bias,
            dt_norm=inner.build(around.norm, self.rank) if inner else None,
            state_norm=inner.build(around.norm, self.state) if inner else None,
        )


class Mamba(Recurrent, frozen=True):
    """A scan of `width` channels with `state` numbers each, `heads` groups of channels apart from each other."""

    hidden_size: int
    width: int
    state: int
    rank: int
    kernel: int
    heads: int
    activation: Activation
    bias: bool
    conv_bias: bool
    dt_norm: Norm | None
    state_norm: Norm | None
    """That of B, and that of C."""

    kind = "mamba"

    def tensors(self) -> tuple[Tensor, ...]:
        """Input and gate [2W, D]; taps; per head the rows of dt, B and C, and of dt's way back; decay [W, N]; skip."""
        per_head = self.width // self.heads
        made = self.rank + 2 * self.state
        heads = (self.heads,) if self.heads > 1 else ()
        norms = (("dt_norm", self.dt_norm), ("b_norm", self.state_norm), ("c_norm", self.state_norm))
        return (
            *projection("in", 2 * self.width, self.hidden_size, self.bias),
            *convolution(self.width, self.kernel, self.conv_bias),
            vector("select", *heads, made, per_head),
            vector("dt.weight", *heads, per_head, self.rank),
            vector("dt.bias", self.width),
            vector("a_log", self.width, self.state),
            vector("skip", self.width),
            *(tensor for name, norm in norms if norm for tensor in norm.tensors(name)),
            *projection("out", self.hidden_size, self.width, self.bias),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution, and the state of every channel."""
        return (ConvCache(self.width, self.kernel), StateCache(self.width * self.state))

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps; a head's weights meet its own channels alone."""
        weights = 3 * self.hidden_size + self.kernel + 2 * self.rank + 2 * self.state
        return 2 * self.width * weights

    def mixing_flops(self, keys: Keys) -> Exact:
        """Six operations per number of the state, whatever the context.

        h ← exp(Δ·A)·h + (Δ·x)·B and y = h·C (Gu & Dao 2023, algorithm 2): one for Δ·A, one for its product with h,
        one for (Δ·x)·B, one to add it, two for the product with C. The exponential is left out, as is the skip.
        """
        del keys
        return 6 * self.width * self.state
