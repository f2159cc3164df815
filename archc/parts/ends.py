"""The two ends of a model: token embedding (with a learned position table, if any) and output head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from pydantic import Field

from archc.parts.base import Fields, Positive, Tensor


class EmbeddingFields(Fields):
    """`embedding:` of a spec."""

    tied: bool = Field(description="Whether the output head is the embedding matrix itself.")
    scale: Positive | Literal["sqrt(hidden_size)"] | None = Field(
        default=None, description="Multiplies the embedded tokens; sqrt(hidden_size) may be written as such."
    )

    def build(self, vocab_size: int, hidden_size: int, positions: int | None) -> Embedding:
        """The embedding that the fields declare."""
        scale = sqrt(hidden_size) if isinstance(self.scale, str) else self.scale
        return Embedding(vocab_size, hidden_size, scale, positions)


class LogitsFields(Fields):
    """`logits:` of a spec."""

    scale: Positive | None = Field(default=None, description="Multiplies the logits.")
    softcap: Positive | None = Field(
        default=None, description="Logits become softcap·tanh(logits / softcap), after the scale."
    )
    bias: bool = Field(default=False, description="Whether the head has a bias.")

    def build(self, vocab_size: int, hidden_size: int, tied: bool) -> Head:
        """The head that the fields declare."""
        return Head(vocab_size, hidden_size, tied, self.bias, self.scale, self.softcap)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Token table [vocab_size, hidden_size]; `positions` rows of learned positions are added, if any."""

    vocab_size: int
    hidden_size: int
    scale: float | None
    positions: int | None

    def tensors(self) -> tuple[Tensor, ...]:
        """The token table and the position table."""
        table = Tensor("embedding.weight", (self.vocab_size, self.hidden_size), "embedding")
        if self.positions is None:
            return (table,)
        return (table, Tensor("position_embedding.weight", (self.positions, self.hidden_size), "position"))


@dataclass(frozen=True, slots=True)
class Head:
    """Projection to [vocab_size] logits; a tied head has no matrix of its own."""

    vocab_size: int
    hidden_size: int
    tied: bool
    bias: bool
    scale: float | None
    softcap: float | None

    def tensors(self) -> Iterator[Tensor]:
        """The matrix, unless it is the embedding, and the bias."""
        if not self.tied:
            yield Tensor("head.weight", (self.vocab_size, self.hidden_size), "head")
        if self.bias:
            yield Tensor("head.bias", (self.vocab_size,), "head")

    def linear_flops(self) -> int:
        """The head multiplies whether or not it is tied."""
        return 2 * self.vocab_size * self.hidden_size
