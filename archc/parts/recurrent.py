"""What mixers with a recurrent state share.

Their arithmetic is counted in recurrent form, one token at a time: per token it does not depend on the context. What
grows with the width of a layer alone (gates, activations, skips, norms) is left out, as everywhere.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Positive, Tensor, linear
from archc.parts.norm import Norm, NormFields, WeightConvention

CONVENTION = (
    "recurrent mixers are counted in recurrent form, token by token; kernels that work in chunks do more operations"
)


class InnerNormFields(Fields, frozen=True, kw_only=True):
    """A norm inside a mixer. What it does not state, it takes from `norm`."""

    eps: Annotated[Positive | None, Meta(description="As norm.eps, which is the default.")] = None
    weight: Annotated[WeightConvention | None, Meta(description="As norm.weight, which is the default.")] = None

    def build(self, norm: NormFields, size: int) -> Norm:
        """The norm over `size` channels; what the fields leave open is as in `norm`."""
        return Norm(norm.kind, size, self.eps or norm.eps, self.weight or norm.weight, norm.bias)


class Recurrent(Struct, frozen=True):
    """What every recurrent mixer answers alike: it has neither queries nor positions, and no template prints it yet."""

    role: ClassVar[Literal["mixer"]] = "mixer"
    partial: ClassVar[None] = None
    shape: ClassVar[None] = None
    rope: ClassVar[None] = None
    window: ClassVar[None] = None
    conventions: ClassVar[tuple[str, ...]] = (CONVENTION,)

    def ungenerated(self) -> tuple[str, ...]:
        """The kind as a whole cannot be generated yet, which stands for all its fields."""
        return ()


def convolution(channels: int, kernel: int, bias: bool) -> tuple[Tensor, ...]:
    """A causal convolution of each channel by itself: `kernel` taps, the current position's included."""
    taps = Tensor("conv.weight", (channels, kernel), "attention")
    return (taps, Tensor("conv.bias", (channels,), "attention")) if bias else (taps,)


def projection(name: str, out_features: int, in_features: int, bias: bool = False) -> tuple[Tensor, ...]:
    """The tensors of a linear layer of a mixer."""
    return linear(name, out_features, in_features, bias, "attention")


def vector(name: str, *shape: int) -> Tensor:
    """A parameter of a mixer that is no linear layer, such as a decay per head."""
    return Tensor(name, shape, "attention")
