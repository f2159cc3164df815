"""A gated feed-forward beside a pool of tiny experts, found by product keys (Lample et al. 2019; He 2024, PEER).

An expert is one row that meets the input and one row that is added for it. Experts form a square: a token scores its
rows and its columns, and the top_k best sums choose (transformers 5.24, models/doge/modeling_doge.py, DogeCDMoE).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import FfnPart, Finding, PartFields, Routed, Settled, Size, Surroundings, Tensor, linear
from archc.parts.feed_forward import ACTIVATION_DOC, Activation, FeedForward


class ProductKeyFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: product_keys}`."""

    kind: Literal["product_keys"]
    experts: Annotated[
        Size, Meta(description="Experts in the pool. The keys are as many as fit on a side of their square.")
    ]
    top_k: Annotated[Size, Meta(description="Experts that a token uses, weighed by a softmax of their scores.")]
    renormalize: Annotated[bool, Meta(description="Whether weights are divided by their sum.")] = False
    width: Annotated[Size, Meta(description="Channels of the gated feed-forward.")]
    activation: Annotated[Activation, Meta(description=ACTIVATION_DOC)]
    bias: Annotated[bool, Meta(description="Whether the matrices of the gated feed-forward have biases.")] = False

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A token cannot use more experts than there are."""
        del around
        if self.top_k > isqrt(self.experts) ** 2:
            yield Finding(
                "E204",
                ("ffn", "top_k"),
                f"a token would use {self.top_k} of {isqrt(self.experts) ** 2} experts that keys reach",
                "lower top_k or add experts",
            )

    def build(self, around: Settled) -> ProductKeys:
        """The feed-forward that the fields declare."""
        dense = FeedForward(around.hidden_size, self.width, self.activation, gated=True, bias=self.bias)
        return ProductKeys(around.hidden_size, self.experts, self.top_k, self.renormalize, dense)


class ProductKeys(FfnPart, frozen=True):
    """A pool of `experts` of which a token uses `top_k`, added to a dense feed-forward."""

    hidden_size: int
    experts: int
    top_k: int
    renormalize: bool
    dense: FeedForward

    kind = "product_keys"
    conventions = ("product keys: scores of rows and columns are counted, adding and sorting their sums is not",)

    @property
    def gated(self) -> bool:
        """That of the dense feed-forward."""
        return self.dense.gated

    @property
    def activation(self) -> str:
        """That of the dense feed-forward."""
        return self.dense.activation

    @property
    def width(self) -> int:
        """Channels of the dense feed-forward."""
        return self.dense.width

    @property
    def routed(self) -> Routed:
        """The pool."""
        return Routed(self.experts, self.top_k, 2 * self.hidden_size)

    @property
    def keys(self) -> int:
        """Keys on each side of the square."""
        return isqrt(self.experts)

    def tensors(self) -> tuple[Tensor, ...]:
        """The dense feed-forward, the keys of both sides, and the two rows of every expert."""
        pool = (
            Tensor(f"experts.{name}", (self.experts, self.hidden_size), "ffn", slices_used=self.top_k)
            for name in ("down", "up")
        )
        return (*self.dense.tensors(), *linear("router", 2 * self.keys, self.hidden_size, False, "router"), *pool)

    def linear_flops(self) -> int:
        """The dense feed-forward, the scores of both sides, and two rows of each expert used."""
        return self.dense.linear_flops() + 2 * self.hidden_size * (2 * self.keys + 2 * self.top_k)
