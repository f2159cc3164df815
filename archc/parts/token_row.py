"""A branch that lets the layer's own vector of each token into the stream (transformers 5.24, models/gemma3n)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import FfnPart, Finding, PartFields, Settled, Surroundings, Tensor, linear
from archc.parts.ends import EmbeddingFields
from archc.parts.feed_forward import ACTIVATION_DOC, Activation


class TokenRowFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: token_row}`: out(activation(gate(x)) · v), v being the layer's vector of embedding.per_layer."""

    kind: Literal["token_row"]
    activation: Annotated[Activation, Meta(description=ACTIVATION_DOC)]

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """There are vectors to read."""
        if isinstance(around.embedding, EmbeddingFields) and around.embedding.per_layer is None:
            yield Finding(
                "E211",
                ("ffn", "kind"),
                "token_row reads a vector of embedding.per_layer, which is not there",
                "state embedding.per_layer",
            )

    def build(self, around: Settled) -> TokenRow:
        """The branch that the fields declare."""
        vectors = around.embedding.per_layer
        assert vectors is not None  # E211
        return TokenRow(around.hidden_size, vectors.width, self.activation)


class TokenRow(FfnPart, frozen=True):
    """Two matrices, [width, hidden_size] and [hidden_size, width]."""

    hidden_size: int
    width: int
    activation: Activation

    kind = "token_row"
    gated = True

    def tensors(self) -> tuple[Tensor, ...]:
        """Into the vector's channels, and back."""
        return (
            *linear("gate", self.width, self.hidden_size, False, "ffn"),
            *linear("out", self.hidden_size, self.width, False, "ffn"),
        )

    def linear_flops(self) -> int:
        """Two operations per weight; the product with the vector is left out."""
        return 4 * self.hidden_size * self.width
