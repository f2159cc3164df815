"""Adaptive softmax: rare tokens are scored in clusters, through narrower layers (Grave et al. 2017).

Sizes as in torch 2.13, nn/modules/adaptive.py, AdaptiveLogSoftmaxWithLoss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from archc.parts.base import Fields, Size, Tensor, linear


class AdaptiveFields(Fields, frozen=True, kw_only=True):
    """`logits.adaptive`: frequent tokens have a score each, and so has every cluster of the rare ones."""

    frequent: Annotated[Size, Meta(description="Tokens that are scored by themselves, the first ones.")]
    clusters: Annotated[
        tuple[Size, ...], Meta(min_length=1, max_length=64, description="Tokens of each cluster, in order.")
    ]
    division: Annotated[
        int, Meta(ge=1, le=2**16, description="Cluster i, from 1, works on hidden_size // division^i channels.")
    ]

    def tensors(self, hidden_size: int, bias: bool) -> Iterator[Tensor]:
        """What scores frequent tokens and clusters, with a bias if asked for, and two layers for each cluster."""
        yield from linear("frequent", self.frequent + len(self.clusters), hidden_size, bias, "head")
        for index, tokens in enumerate(self.clusters):
            width = hidden_size // self.division ** (index + 1)
            yield from linear(f"clusters.{index}.down", width, hidden_size, False, "head")
            yield from linear(f"clusters.{index}.up", tokens, width, False, "head")

    def weights(self, hidden_size: int) -> int:
        """Weights that score all tokens, biases left out."""
        return sum(tensor.size for tensor in self.tensors(hidden_size, bias=False))
