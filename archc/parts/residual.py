"""The residual stream: how the output of a branch joins it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from archc.parts.base import Fields, Positive, Tensor

Target = Literal["stream", "replace_input", "add_to_input", "layer_end", "other_streams"]
Carries = Literal["stream", "normed"]
Learned = Literal["none", "stream", "both", "rate"]


class ResidualFields(Fields):
    """`residual:` of a spec: x becomes stream·x + branch·f(x)."""

    stream: Positive = Field(default=1.0, description="Multiplies the residual stream at every branch.")
    branch: Positive = Field(default=1.0, description="Multiplies a branch's output before it is added.")
    by_depth: bool = Field(
        default=False,
        description="Whether, besides, the stream is multiplied by sqrt((n - 1) / n) and the output by 1 / sqrt(n), "
        "where the branch is the n-th thing in the model to write to the stream, the embedding being the first.",
    )
    carries: Carries = Field(
        default="stream", description="normed: what goes on beside the branch is its normed input, not the stream."
    )
    target: Target = Field(
        default="stream",
        description="Where the output goes: stream, into the residual stream; replace_input, only the next branch sees "
        "it, instead of the stream; add_to_input, only the next branch sees it, added to the stream before its norm; "
        "layer_end, into the stream behind the last branch of the layer; other_streams, into every stream of streams "
        "but the first.",
    )
    float32: bool = Field(default=False, description="Whether the stream is kept in float32 whatever the model's type.")
    learned: Learned = Field(
        default="none",
        description="stream: a learned number per channel multiplies the stream at every branch; both: stream and "
        "output each have a learned shift and then a learned factor per channel; rate: instead of the sum there is x + "
        "|r|·(f(x) - x), with a learned rate r per channel.",
    )
    learned_scale: Positive = Field(
        default=1.0, description="Multiplies what is learned, which is stored divided by it."
    )
    layer_scalar: bool = Field(
        default=False, description="Whether a stored number multiplies the stream at the end of the layer."
    )

    def build(self, hidden_size: int) -> Residual:
        """The rule that the fields declare, for a stream of `hidden_size` channels."""
        return Residual(
            self.stream,
            self.branch,
            self.carries,
            self.target,
            self.float32,
            channels=hidden_size,
            learned=self.learned,
            learned_scale=self.learned_scale,
            layer_scalar=self.layer_scalar,
            by_depth=self.by_depth,
        )


@dataclass(frozen=True, slots=True)
class Residual:
    """x becomes stream·x + branch·f(x)."""

    stream: float
    branch: float
    carries: Carries = "stream"
    target: Target = "stream"
    float32: bool = False
    channels: int = 0
    """Channels of the stream."""
    learned: Learned = "none"
    learned_scale: float = 1.0
    layer_scalar: bool = False
    by_depth: bool = False

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        unusual = {
            "carries": self.carries != "stream",
            "target": self.target != "stream",
            "float32": self.float32,
            "learned": self.learned != "none",
            "layer_scalar": self.layer_scalar,
            "by_depth": self.by_depth,
        }
        return tuple(f"residual.{name}" for name, is_so in unusual.items() if is_so)

    def tensors(self) -> tuple[Tensor, ...]:
        """Parameters that weigh the stream or the branch."""
        names: Mapping[Learned, tuple[str, ...]] = {
            "none": (),
            "stream": ("weight",),
            "both": ("stream_shift", "stream_factor", "branch_shift", "branch_factor"),
            "rate": ("rate",),
        }
        return tuple(Tensor(name, (self.channels,), "other") for name in names[self.learned])
