"""Norms: RMSNorm and LayerNorm, with the conventions that ports get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Positive, Size, Tensor, linear

NormKind = Literal["rmsnorm", "layernorm", "l2"]
NORM_NAMES: Final[Mapping[str, str]] = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm", "l2": "L2 norm"}
"""What people call them."""
WeightConvention = Literal["plain", "one_plus", "none"]
Placement = Literal["pre", "post", "sandwich", "parallel", "parallel_separate", "post_sum"]


class NormFields(Fields, frozen=True, kw_only=True):
    """`norm:` of a spec."""

    kind: Annotated[
        NormKind,
        Meta(
            description="rmsnorm divides by the root mean square (Zhang & Sennrich 2019); layernorm subtracts the mean "
            "too (Ba et al. 2016). Swapping them raises nothing and costs a trained model a few percent. l2 divides by "
            "the length of the vector."
        ),
    ]
    eps: Annotated[Positive, Meta(description="Added to the mean square (or the variance) before the square root.")]
    weight: Annotated[
        WeightConvention,
        Meta(
            description="How the stored weight acts: plain multiplies by w, one_plus by (1 + w), none stores no weight."
        ),
    ] = "plain"
    bias: Annotated[bool, Meta(description="Whether a stored shift is added after the weight.")] = False
    placement: Annotated[
        Placement,
        Meta(
            description="pre: before each branch; post: on the branch output, before it is added; sandwich: both; "
            "parallel: attention and feed-forward read the same normed input and are added together; "
            "parallel_separate: the same, each behind a norm of its own; post_sum: on the sum of stream and branch "
            "(Vaswani et al. 2017)."
        ),
    ] = "pre"
    gate_rank: Annotated[
        Size | None,
        Meta(
            description="y, what is normed, becomes y·sigmoid(up(silu(down(y)))), by matrices with this many channels "
            "between them."
        ),
    ] = None

    def build(self, size: int) -> Norm:
        """The norm that the fields declare, over `size` channels."""
        return Norm(self.kind, size, self.eps, self.weight, self.bias, self.gate_rank)


class InnerNormFields(Fields, frozen=True, kw_only=True):
    """A norm inside a part. What it does not state, it takes from `norm`."""

    kind: Annotated[NormKind | None, Meta(description="As norm.kind, which is the default.")] = None
    eps: Annotated[Positive | None, Meta(description="As norm.eps, which is the default.")] = None
    weight: Annotated[WeightConvention | None, Meta(description="As norm.weight, which is the default.")] = None
    bias: Annotated[bool | None, Meta(description="As norm.bias, which is the default.")] = None

    def build(self, norm: NormFields, size: int) -> Norm:
        """The norm over `size` channels; what the fields leave open is as in `norm`."""
        return Norm(
            kind=self.kind or norm.kind,
            size=size,
            eps=self.eps or norm.eps,
            weight=self.weight or norm.weight,
            bias=norm.bias if self.bias is None else self.bias,
        )


class Norm(Struct, frozen=True):
    """A norm over the last dimension, of `size` channels."""

    kind: NormKind
    size: int
    eps: float
    weight: WeightConvention
    bias: bool
    gate_rank: int | None = None
    heads: int | None = None
    """Heads of `size` channels each, where every one has a weight and a shift of its own."""

    @property
    def stores(self) -> bool:
        """Whether it has a weight or a shift."""
        return self.weight != "none" or self.bias

    def tensors(self, name: str) -> tuple[Tensor, ...]:
        """Weight and shift where the convention stores them, [size] or [heads, size], and two matrices of a gate."""
        shape = (self.size,) if self.heads is None else (self.heads, self.size)
        tensors = [] if self.weight == "none" else [Tensor(f"{name}.weight", shape, "norm", gain=self.weight)]
        tensors += [Tensor(f"{name}.bias", shape, "norm")] if self.bias else []
        if self.gate_rank:
            tensors += linear(f"{name}.gate_down", self.gate_rank, self.size, False, "norm")
            tensors += linear(f"{name}.gate_up", self.size, self.gate_rank, False, "norm")
        return tuple(tensors)

    def linear_flops(self) -> int:
        """Two operations per weight of a gate; the norm itself is no product of matrices."""
        return 4 * self.size * (self.gate_rank or 0)

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        found = {f"norm.kind: {self.kind}": self.kind == "l2", "norm.gate_rank": self.gate_rank is not None}
        return tuple(name for name, unusual in found.items() if unusual)
