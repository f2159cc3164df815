"""Per-layer embeddings: beside the stream, every layer is given a short vector of each token.

It is the mean (times sqrt 2) of two: a row of a second token table, times sqrt(width); and a projection of the embedded
token, divided by sqrt(hidden_size), behind a norm that all layers share (transformers 5.24,
models/gemma3n/modeling_gemma3n.py, Gemma3nTextModel.project_per_layer_inputs). `ffn.kind: token_row` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from archc.parts.base import Fields, Size, Tensor, linear
from archc.parts.norm import Norm, NormFields


class PerLayerFields(Fields, frozen=True, kw_only=True):
    """`embedding.per_layer`: a vector of each token for every layer."""

    width: Annotated[Size, Meta(description="Channels that every layer is given.")]
    rows: Annotated[Size, Meta(description="Rows of the second token table, each with the channels of all layers.")]

    def build(self, hidden_size: int, layers: int, norm: NormFields) -> PerLayer:
        """The vectors that the fields declare, of a model with so many layers; `norm` is the model's."""
        return PerLayer(hidden_size, layers, self.width, self.rows, norm.build(self.width))


class PerLayer(Struct, frozen=True):
    """A table [rows, layers · width], a projection [layers · width, hidden_size], and a norm of `width` channels."""

    hidden_size: int
    layers: int
    width: int
    rows: int
    norm: Norm

    def tensors(self) -> Iterator[Tensor]:
        """The table, the projection and the norm."""
        wide = self.layers * self.width
        yield Tensor("per_layer_embedding.weight", (self.rows, wide), "embedding")
        yield from linear("per_layer_projection", wide, self.hidden_size, False, "other")
        yield from self.norm.tensors("per_layer_norm")

    def linear_flops(self) -> int:
        """The projection, two operations per weight."""
        return 2 * self.layers * self.width * self.hidden_size
