"""Mamba-2 (SSD): a state space whose heads decay as a whole and share B and C in groups (Dao & Gu 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Fields, Finding, Keys, PartFields, Positive, Settled, Size, Surroundings, Tensor
from archc.parts.caches import Cache, ConvCache, Exact, StateCache
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.recurrent import Recurrent, convolution, projection, vector


class Mamba2FactorFields(Fields, frozen=True, kw_only=True):
    """`mixer.factors` of mamba2: constants that multiply what flows through the mixer."""

    input: Annotated[Positive, Meta(description="On what the mixer reads.")] = 1.0
    gate: Annotated[Positive, Meta(description="On the projected gate.")] = 1.0
    x: Annotated[Positive, Meta(description="On the projected x.")] = 1.0
    b: Annotated[Positive, Meta(description="On the projected B.")] = 1.0
    c: Annotated[Positive, Meta(description="On the projected C.")] = 1.0
    dt: Annotated[Positive, Meta(description="On the projected time steps.")] = 1.0
    output: Annotated[Positive, Meta(description="On what the mixer puts out.")] = 1.0


class OutputNormFields(InnerNormFields, frozen=True, kw_only=True):
    """`mixer.output_norm` of mamba2: a norm on the heads' output, beside the gate silu(z)."""

    order: Annotated[
        Literal["after_gate", "before_gate"],
        Meta(description="Whether the gate multiplies what is normed, or what has been normed."),
    ] = "after_gate"


class Mamba2Fields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: mamba2}`."""

    kind: Literal["mamba2"]
    heads: Annotated[Size, Meta(description="Heads, each with one decay.")]
    head_dim: Annotated[Size, Meta(description="Channels of a head.")]
    groups: Annotated[Size, Meta(description="Groups of heads that share B and C; norms work in these groups too.")] = 1
    state: Annotated[Size, Meta(description="Numbers that every channel remembers.")]
    kernel: Annotated[Size, Meta(description="Positions that the causal convolution on x, B and C sees.")]
    activation: Annotated[Activation, Meta(description=f"After the convolution. {ACTIVATION_DOC}")] = "silu"
    bias: Annotated[bool, Meta(description="Whether the projection into the mixer has a bias.")] = False
    output_bias: Annotated[bool, Meta(description="Whether the projection out of the mixer has a bias.")] = False
    conv_bias: Annotated[bool, Meta(description="Whether the convolution has a bias.")] = True
    output_norm: Annotated[OutputNormFields | None, Meta(description="A norm on the heads' output, in groups.")] = None
    dt_min: Annotated[
        float,
        Meta(
            ge=0,
            description="Time steps are raised to this. Transformers does so when it reads many tokens, not for a "
            "single one.",
        ),
    ] = 0.0
    dt_max: Annotated[Positive | None, Meta(description="Time steps are lowered to this, as for dt_min.")] = None
    factors: Annotated[
        Mamba2FactorFields, Meta(description="Constants that multiply what flows through the mixer.")
    ] = Mamba2FactorFields()

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Groups are equal."""
        del around
        if self.heads % self.groups:
            yield Finding(
                "E201",
                ("mixer", "groups"),
                f"{self.heads} heads cannot share B and C in {self.groups} equal groups",
                f"choose a divisor of {self.heads}",
            )

    def build(self, around: Settled) -> Mamba2:
        """The mixer that the fields declare."""
        norm = self.output_norm
        return Mamba2(
            hidden_size=around.hidden_size,
            heads=self.heads,
            head_dim=self.head_dim,
            groups=self.groups,
            state=self.state,
            kernel=self.kernel,
            activation=self.activation,
            bias=self.bias,
            output_bias=self.output_bias,
            conv_bias=self.conv_bias,
            output_norm=norm.build(around.norm, self.heads * self.head_dim) if norm else None,
            gate_first=norm is None or norm.order == "after_gate",
            dt_min=self.dt_min,
            dt_max=self.dt_max,
            factors=self.factors,
        )


class Mamba2(Recurrent, frozen=True):
    """`heads` states of [head_dim, state] numbers; `groups` of heads share B and C."""

    hidden_size: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    activation: Activation
    bias: bool
    output_bias: bool
    conv_bias: bool
    output_norm: Norm | None
    gate_first: bool
    dt_min: float
    dt_max: float | None
    factors: Mamba2FactorFields

    kind = "mamba2"

    @property
    def width(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Channels of x, B and C, which pass through the convolution."""
        return self.width + 2 * self.groups * self.state

    def tensors(self) -> tuple[Tensor, ...]:
        """Gate, x, B, C and dt in one projection; taps; per head a decay, a skip and the bias of dt."""
        return (
            *projection("in", self.width + self.conv_width + self.heads, self.hidden_size, self.bias),
            *convolution(self.conv_width, self.kernel, self.conv_bias),
            vector("a_log", self.heads),
            vector("skip", self.heads),
            vector("dt_bias", self.heads),
            *(self.output_norm.tensors("output_norm") if self.output_norm else ()),
            *projection("out", self.hidden_size, self.width, self.output_bias),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution, and the states of the heads."""
        return (ConvCache(self.conv_width, self.kernel), StateCache(self.width * self.state))

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps."""
        into = self.hidden_size * (self.width + self.conv_width + self.heads)
        return 2 * (into + self.hidden_size * self.width + self.conv_width * self.kernel)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Five operations per number of the state, whatever the context.

        h ← a·h + (Δ·x)·B and y = h·C with one a per head (Dao & Gu 2024, section 2): one for a·h, one for (Δ·x)·B, one
        to add it, two for the product with C.
        """
        del keys
        return 5 * self.width * self.state
