"""Dense feed-forwards: two matrices (mlp) or three with a gate (gated; Shazeer 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from archc.parts.base import Fields, Finding, Size, Tensor, linear

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]

ACTIVATION_DOC = (
    "silu: x·sigmoid(x); gelu: x·Φ(x), exact; gelu_tanh: its tanh form (transformers: gelu_new, gelu_pytorch_tanh); "
    "relu: max(x, 0); relu2: its square."
)


class DenseFields(Fields):
    """Fields that both dense feed-forwards have."""

    width: Size = Field(description="Channels between the matrices.")
    activation: Activation = Field(description=ACTIVATION_DOC)
    bias: bool = Field(default=False, description="Whether every matrix has a bias.")


class MlpFields(DenseFields):
    """`ffn: {kind: mlp}`: down(activation(up(x)))."""

    kind: Literal["mlp"]


class GatedFields(DenseFields):
    """`ffn: {kind: gated}`: down(activation(gate(x)) · up(x))."""

    kind: Literal["gated"]


@dataclass(frozen=True, slots=True)
class FeedForward:
    """A dense feed-forward of `width` channels, with or without a gate."""

    hidden_size: int
    width: int
    activation: Activation
    gated: bool
    bias: bool

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


def build_feed_forward(fields: MlpFields | GatedFields, hidden_size: int) -> FeedForward:
    """The feed-forward that `fields` declare."""
    return FeedForward(hidden_size, fields.width, fields.activation, isinstance(fields, GatedFields), fields.bias)


def check_feed_forward(fields: MlpFields | GatedFields, hidden_size: int | None) -> Iterator[Finding]:
    """A gated feed-forward at 4·d is half as large again as the design it is meant to match."""
    if isinstance(fields, GatedFields) and hidden_size is not None and fields.width == 4 * hidden_size:
        yield Finding(
            "W401",
            ("ffn", "width"),
            f"a gated feed-forward of width 4 × {hidden_size} has 50 % more parameters than a plain one",
            f"8/3 × hidden_size = {round(8 * hidden_size / 3)} keeps the size of a plain one at 4·d",
        )
