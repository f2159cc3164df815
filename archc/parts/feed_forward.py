"""Dense feed-forwards: two matrices (mlp) or three with a gate (gated; Shazeer 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from archc.parts.base import Fields, Finding, Settled, Size, Surroundings, Tensor, linear

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]

ACTIVATION_DOC = (
    "silu: x·sigmoid(x); gelu: x·Φ(x), exact; gelu_tanh: its tanh form (transformers: gelu_new, gelu_pytorch_tanh); "
    "relu: max(x, 0); relu2: its square."
)


class DenseFields(Fields):
    """Fields that both dense feed-forwards have."""

    gated: ClassVar[bool]
    width: Size = Field(description="Channels between the matrices.")
    activation: Activation = Field(description=ACTIVATION_DOC)
    bias: bool = Field(default=False, description="Whether every matrix has a bias.")

    def build(self, around: Settled) -> FeedForward:
        """The feed-forward that the fields declare."""
        return FeedForward(around.hidden_size, self.width, self.activation, self.gated, self.bias)


class MlpFields(DenseFields):
    """`ffn: {kind: mlp}`: down(activation(up(x)))."""

    gated = False
    kind: Literal["mlp"]


class GatedFields(DenseFields):
    """`ffn: {kind: gated}`: down(activation(gate(x)) · up(x))."""

    gated = True
    kind: Literal["gated"]

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A gated feed-forward at 4·d is half as large again as the design it is meant to match."""
        hidden_size = around.hidden_size
        if hidden_size is not None and self.width == 4 * hidden_size:
            yield Finding(
                "W401",
                ("ffn", "width"),
                f"a gated feed-forward of width 4 × {hidden_size} has 50 % more parameters than a plain one",
                f"8/3 × hidden_size = {round(8 * hidden_size / 3)} keeps the size of a plain one at 4·d",
            )


@dataclass(frozen=True, slots=True)
class FeedForward:
    """A dense feed-forward of `width` channels, with or without a gate."""

    hidden_size: int
    width: int
    activation: Activation
    gated: bool
    bias: bool

    role: ClassVar[Literal["ffn"]] = "ffn"
    slot = "ffn"
    partial = "feed_forward.py.j2"

    @property
    def kind(self) -> str:
        """The language's name for it."""
        return "gated" if self.gated else "mlp"

    def tensors(self) -> tuple[Tensor, ...]:
        """gate (if any), up and down."""
        inputs = ("gate", "up") if self.gated else ("up",)
        tensors: list[Tensor] = []
        for name in inputs:
            tensors += linear(name, self.width, self.hidden_size, self.bias, "ffn")
        return (*tensors, *linear("down", self.hidden_size, self.width, self.bias, "ffn"))

    def cache(self) -> None:
        """A feed-forward remembers nothing."""

    def linear_flops(self) -> int:
        """Two operations per weight; the activation and the gate's product are left out."""
        return 2 * (3 if self.gated else 2) * self.hidden_size * self.width

    def mixing_flops(self, keys: float) -> float:
        """Positions do not meet here."""
        del keys
        return 0
