"""The sections inside `attention`: what may be done to queries, keys, scores and the output of heads."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from archc.parts.base import Fields, Positive, Size
from archc.parts.norm import Norm, NormFields, NormKind, WeightConvention

Projection = Literal["q", "k", "v", "o"]
PROJECTIONS: tuple[Projection, ...] = get_args(Projection)
Grouping = Literal["interleaved", "tiled"]
NormedOver = Literal["head", "each_head", "width"]
Sinks = Literal["none", "column", "sigmoid", "projected"]
Kv = Literal["own", "reused", "not_kept"]


class GateFields(Fields):
    """`attention.gate`: the output of the heads is multiplied by a learned function of the layer's input."""

    over: Literal["head", "element"] = Field(description="One factor for each head, or one for each of its channels.")
    score: Literal["sigmoid", "softplus"] = Field(default="sigmoid", description="Turns the projection into a factor.")
    bias: bool = Field(default=False, description="Whether the projection has a bias.")


class HeadGateFields(GateFields):
    """`attention.gate` of plain heads."""

    head_bias: bool = Field(
        default=False, description="Whether a number for each head is added to the projection of all its channels."
    )
    factor: Positive | None = Field(
        default=None,
        description="A learned number for each of the factors, times this, then squared, multiplies the projection.",
    )


class QKNormFields(Fields):
    """`attention.qk_norm`: a norm on queries and keys. What it does not state, it takes from `norm`."""

    over: NormedOver = Field(
        description="head: each head's channels alone, all heads with the same weight; each_head: the same with a "
        "weight for each head; width: all heads of the projection together."
    )
    order: Literal["before_rope", "after_rope"] = Field(
        default="before_rope", description="Whether queries and keys are normed before or after they rotate."
    )
    kind: NormKind | None = Field(default=None, description="As norm.kind, which is the default.")
    eps: Positive | None = Field(default=None, description="As norm.eps, which is the default.")
    weight: WeightConvention | None = Field(default=None, description="As norm.weight, which is the default.")
    bias: bool | None = Field(default=None, description="As norm.bias, which is the default.")

    def build(self, norm: NormFields, heads: int, head_dim: int) -> Norm:
        """The norm of `heads` heads of `head_dim` channels; what the fields leave open is as in `norm`."""
        return Norm(
            kind=self.kind or norm.kind,
            size=head_dim if self.over == "head" else heads * head_dim,
            eps=self.eps or norm.eps,
            weight=self.weight or norm.weight,
            bias=norm.bias if self.bias is None else self.bias,
        )


class QueryScaleFields(Fields):
    """`attention.query_scale`: queries grow with their position, after rotating.

    With n the position's number, x = n / length. From transformers 5.24, models/ministral3, llama4, inkling and beam.
    """

    form: Literal["steps", "beyond", "power"] = Field(
        description="steps: 1 + strength·ln(1 + floor(x)); beyond: 1 + strength·ln(max(x, 1)); power: (1 + x)^strength."
    )
    strength: Positive = Field(description="How fast queries grow.")
    length: Size = Field(description="Positions per step, or at which growth begins.")
    first: Literal[0, 1] = Field(default=0, description="Number of the first position.")


class DynamicMaskFields(Fields):
    """`attention.dynamic_mask`: values decide which keys count, by exp(a · softplus(their projection)) per head.

    That number is added to the scores of its key, and only the keys with the largest ones are seen (transformers 5.24,
    models/doge/modeling_doge.py).
    """

    keep: Size = Field(description="Keys that a query sees at most.")
    bias: bool = Field(default=False, description="Whether the projection has a bias.")
