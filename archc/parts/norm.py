"""Norms: RMSNorm and LayerNorm, with the conventions that ports get wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from archc.parts.base import Fields, Positive, Tensor

NormKind = Literal["rmsnorm", "layernorm"]
WeightConvention = Literal["plain", "one_plus", "none"]
Placement = Literal["pre", "post", "sandwich", "parallel"]


class NormFields(Fields):
    """`norm:` of a spec."""

    kind: NormKind = Field(
        description="rmsnorm divides by the root mean square (Zhang & Sennrich 2019); layernorm subtracts the mean too "
        "(Ba et al. 2016). Swapping them raises nothing and costs a trained model a few percent."
    )
    eps: Positive = Field(description="Added to the mean square (or the variance) before the square root.")
    weight: WeightConvention = Field(
        default="plain",
        description="How the stored weight acts: plain multiplies by w, one_plus by (1 + w), none stores no weight.",
    )
    bias: bool = Field(default=False, description="Whether a stored shift is added after the weight.")
    placement: Placement = Field(
        default="pre",
        description="pre: before each branch; post: on the branch output, before it is added; sandwich: both; "
        "parallel: attention and feed-forward read the same normed input and are added together.",
    )

    def build(self, size: int) -> Norm:
        """The norm that the fields declare, over `size` channels."""
        return Norm(self.kind, size, self.eps, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    """A norm over the last dimension, of `size` channels."""

    kind: NormKind
    size: int
    eps: float
    weight: WeightConvention
    bias: bool

    def tensors(self, name: str) -> tuple[Tensor, ...]:
        """Weight and shift, [size] each, where the convention stores them."""
        stored = ["weight"] * (self.weight != "none") + ["bias"] * self.bias
        return tuple(Tensor(f"{name}.{kind}", (self.size,), "norm") for kind in stored)
