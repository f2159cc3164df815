"""What mixers with a recurrent state share.

Their arithmetic is counted in recurrent form, one token at a time: per token it does not depend on the context. What
grows with the width of a layer alone (gates, activations, skips, norms) is left out, as everywhere.
"""

from __future__ import annotations

from archc.parts.base import MixerPart, Tensor, linear

CONVENTION = (
    "recurrent mixers are counted in recurrent form, token by token; kernels that work in chunks do more operations"
)


class Recurrent(MixerPart, frozen=True):
    """What every recurrent mixer answers alike: it has neither queries nor positions, and no template prints it yet."""

    @property
    def conventions(self) -> tuple[str, ...]:
        """How its arithmetic is counted, where it has a state."""
        return (CONVENTION,) if any(cache.state for cache in self.caches()) else ()


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
