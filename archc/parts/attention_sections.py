"""The sections inside `attention`: what may be done to queries, keys, scores and the output of heads."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.base import Fields, Positive, Size
from archc.parts.norm import InnerNormFields, Norm, NormFields

Projection = Literal["q", "k", "v", "o"]
PROJECTIONS: tuple[Projection, ...] = get_args(Projection)
Grouping = Literal["interleaved", "tiled"]
Sinks = Literal["none", "column", "sigmoid", "projected"]
Kv = Literal["own", "reused", "not_kept"]


class GateFields(Fields, frozen=True, kw_only=True):
    """`attention.gate`: the output of the heads is multiplied by a learned function of the layer's input."""

    over: Annotated[
        Literal["head", "element"], Meta(description="One factor for each head, or one for each of its channels.")
    ]
    score: Annotated[Literal["sigmoid", "softplus"], Meta(description="Turns the projection into a factor.")] = (
        "sigmoid"
    )
    bias: Annotated[bool, Meta(description="Whether the projection has a bias.")] = False


class HeadGateFields(GateFields, frozen=True, kw_only=True):
    """`attention.gate` of plain heads."""

    head_bias: Annotated[
        bool, Meta(description="Whether a number for each head is added to the projection of all its channels.")
    ] = False
    factor: Annotated[
        Positive | None,
        Meta(
            description="A learned number for each of the factors, times this, then squared, multiplies the projection."
        ),
    ] = None


class QKNormFields(InnerNormFields, frozen=True, kw_only=True):
    """`attention.qk_norm`: a norm on queries and keys. What it does not state, it takes from `norm`."""

    over: Annotated[
        Literal["head", "each_head", "width"],
        Meta(
            description="head: each head's channels alone, all heads with the same weight; each_head: the same with a "
            "weight for each head; width: all heads of the projection together."
        ),
    ]
    order: Annotated[
        Literal["before_rope", "after_rope"],
        Meta(description="Whether queries and keys are normed before or after they rotate."),
    ] = "before_rope"

    def over_heads(self, norm: NormFields, heads: int, head_dim: int) -> Norm:
        """The norm of `heads` heads of `head_dim` channels; what the fields leave open is as in `norm`."""
        if self.over == "width":
            return self.build(norm, heads * head_dim)
        found = self.build(norm, head_dim)
        return replace(found, heads=heads) if self.over == "each_head" and found.stores else found


class QueryScaleFields(Fields, frozen=True, kw_only=True):
    """`attention.query_scale`: queries grow with their position, after rotating.

    With n the position's number, x = n / length. From transformers 5.24, models/ministral3, llama4, inkling and beam.
    """

    form: Annotated[
        Literal["steps", "beyond", "power"],
        Meta(
            description="steps: 1 + strength·ln(1 + floor(x)); beyond: 1 + strength·ln(max(x, 1)); power: (1 + "
            "x)^strength."
        ),
    ]
    strength: Annotated[Positive, Meta(description="How fast queries grow.")]
    length: Annotated[Size, Meta(description="Positions per step, or at which growth begins.")]
    first: Annotated[Literal[0, 1], Meta(description="Number of the first position.")] = 0
    counts: Annotated[
        Literal["positions", "columns"],
        Meta(
            description="What n numbers: positions; or columns of the input and the cache, padding included, whatever "
            "positions are given."
        ),
    ] = "positions"


class DynamicMaskFields(Fields, frozen=True, kw_only=True):
    """`attention.dynamic_mask`: values decide which keys count, by exp(a · softplus(their projection)) per head.

    That number is added to the scores of its key, and only the keys with the largest ones are seen (transformers 5.24,
    models/doge/modeling_doge.py).
    """

    keep: Annotated[Size, Meta(description="Keys that a query sees at most.")]
    bias: Annotated[bool, Meta(description="Whether the projection has a bias.")] = False
