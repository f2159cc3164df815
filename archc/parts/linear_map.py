"""A plain linear layer as a branch of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import FfnPart, PartFields, Settled, Tensor, linear


class LinearMapFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: linear}`: one matrix from the stream's width to itself."""

    kind: Literal["linear"]
    bias: Annotated[bool, Meta(description="Whether the matrix has a bias.")] = False

    def build(self, around: Settled) -> LinearMap:
        """The layer that the fields declare."""
        return LinearMap(around.hidden_size, self.bias)


class LinearMap(FfnPart, frozen=True):
    """A matrix [hidden_size, hidden_size]."""

    hidden_size: int
    bias: bool

    kind = "linear"

    @property
    def width(self) -> int:
        """Channels that it puts out."""
        return self.hidden_size

    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix, and its bias."""
        return linear("map", self.hidden_size, self.hidden_size, self.bias, "ffn")

    def linear_flops(self) -> int:
        """Two operations per weight."""
        return 2 * self.hidden_size * self.hidden_size
