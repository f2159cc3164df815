"""Dense feed-forwards: two matrices (mlp) or three with a gate (gated; Shazeer 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.additions import ADAPTER_DOC, GatedFactorFields, adapter
from archc.parts.base import FfnPart, Finding, PartFields, Settled, Size, Surroundings, Tensor, linear
from archc.parts.glu import GluFields, stated
from archc.parts.norm import Norm

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]

LearnedActivation = Literal["xielu"]

ACTIVATION_NAMES: Final[Mapping[str, str]] = {
    "silu": "SiLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "relu": "ReLU",
    "relu2": "ReLU²",
}
"""What people call them, where that is not the word of the language."""

ACTIVATION_DOC = (
    "silu: x·sigmoid(x); gelu: x·Φ(x), exact; gelu_tanh: its tanh form (transformers: gelu_new, gelu_pytorch_tanh); "
    "relu: max(x, 0); relu2: its square."
)


class DenseFields(PartFields, frozen=True, kw_only=True):
    """Fields that both dense feed-forwards have."""

    gated: ClassVar[bool]
    width: Annotated[Size, Meta(description="Channels between the matrices.")]
    activation: Annotated[
        Activation | LearnedActivation,
        Meta(description=f"{ACTIVATION_DOC} xielu: two learned slopes, one for each sign (Huang & Schlag 2024)."),
    ]
    bias: Annotated[bool, Meta(description="Whether every matrix has a bias.")] = False
    inner_norm: Annotated[bool, Meta(description="Whether a norm, as in norm, stands before the last matrix.")] = False

    def build(self, around: Settled) -> FeedForward:
        """The feed-forward that the fields declare."""
        return FeedForward(
            around.hidden_size,
            self.width,
            self.activation,
            self.gated,
            self.bias,
            inner_norm=around.norm.build(self.width) if self.inner_norm else None,
        )


class MlpFields(DenseFields, frozen=True, kw_only=True):
    """`ffn: {kind: mlp}`: down(activation(up(x)))."""

    gated = False
    kind: Literal["mlp"]


class GatedFields(DenseFields, frozen=True, kw_only=True):
    """`ffn: {kind: gated}`: down(activation(gate(x)) · up(x))."""

    gated = True
    kind: Literal["gated"]
    glu: Annotated[GluFields | None, Meta(description="What happens around the product of the two halves.")] = None
    factors: Annotated[
        GatedFactorFields | None, Meta(description="Constants that multiply what flows through the feed-forward.")
    ] = None
    adapter_rank: Annotated[Size | None, Meta(description=ADAPTER_DOC.format(projections="gate and up together"))] = (
        None
    )

    def build(self, around: Settled) -> FeedForward:
        """The feed-forward that the fields declare."""
        factors = None if self.factors == GatedFactorFields() else self.factors
        return replace(super().build(around), glu=stated(self.glu), factors=factors, adapter_rank=self.adapter_rank)

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A gated feed-forward at 4·d is half as large again as the design it is meant to match."""
        if self.glu is not None:
            yield from self.glu.check_half(("ffn", "glu"), self.activation, self.gated)
        hidden_size = around.hidden_size
        if hidden_size is not None and self.width == 4 * hidden_size:
            yield Finding(
                "W401",
                ("ffn", "width"),
                f"a gated feed-forward of width 4 × {hidden_size} has 50 % more parameters than a plain one",
                f"8/3 × hidden_size = {round(8 * hidden_size / 3)} keeps the size of a plain one at 4·d",
            )


class FeedForward(FfnPart, frozen=True):
    """A dense feed-forward of `width` channels, with or without a gate."""

    hidden_size: int
    width: int
    activation: Activation | LearnedActivation
    gated: bool
    bias: bool
    glu: GluFields | None = None
    factors: GatedFactorFields | None = None
    adapter_rank: int | None = None
    inner_norm: Norm | None = None

    partial = "feed_forward.py.j2"

    @property
    def kind(self) -> str:
        """The language's name for it."""
        return "gated" if self.gated else "mlp"

    def tensors(self) -> tuple[Tensor, ...]:
        """gate (if any), up and down, and what stands between them.

        xielu has two parameters and stores two constants beside them (transformers 5.24, activations.py).
        """
        inputs = ("gate", "up") if self.gated else ("up",)
        tensors: list[Tensor] = []
        for name in inputs:
            tensors += linear(name, self.width, self.hidden_size, self.bias, "ffn")
        if self.activation == "xielu":
            tensors += (Tensor(f"activation.{name}", (1,), "ffn") for name in ("alpha_p", "alpha_n"))
            tensors += (Tensor(f"activation.{name}", (), "ffn", buffer=True) for name in ("beta", "eps"))
        if self.factors and self.factors.learned is not None:
            tensors += (Tensor(f"{name}_factor", (self.width,), "ffn") for name in inputs)
        if self.factors and self.factors.learned_output:
            tensors.append(Tensor("output_factor", (1,), "ffn"))
        if self.inner_norm:
            tensors += self.inner_norm.tensors("inner_norm")
        return (*tensors, *linear("down", self.hidden_size, self.width, self.bias, "ffn"), *self._adapter())

    def _adapter(self) -> tuple[Tensor, ...]:
        return adapter("gate_up", 2 * self.width, self.hidden_size, self.adapter_rank, "ffn")

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        adapter_rank = ("ffn.adapter_rank",) if self.adapter_rank is not None else ()
        glu = self.glu.ungenerated("ffn.glu") if self.glu else ()
        norm = self.inner_norm.ungenerated() if self.inner_norm else ()
        return (*adapter_rank, *glu, *norm)

    def linear_flops(self) -> int:
        """Two operations per weight; the activation and the gate's product are left out."""
        added = sum(tensor.size for tensor in self._adapter())
        return 2 * ((3 if self.gated else 2) * self.hidden_size * self.width + added)
