"""The residual stream: how the output of a branch joins it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Finding, Positive, Surroundings, Tensor

Target = Literal["stream", "replace_input", "add_to_input", "layer_end", "other_streams"]
Carries = Literal["stream", "normed"]
Learned = Literal["none", "stream", "both", "rate"]


class ResidualFields(Fields, frozen=True, kw_only=True):
    """`residual:` of a spec: x becomes stream·x + branch·f(x)."""

    stream: Annotated[Positive, Meta(description="Multiplies the residual stream at every branch.")] = 1.0
    branch: Annotated[Positive, Meta(description="Multiplies a branch's output before it is added.")] = 1.0
    by_depth: Annotated[
        bool,
        Meta(
            description="Whether, besides, the stream is multiplied by sqrt((n - 1) / n) and the output by 1 / "
            "sqrt(n), where the branch is the n-th thing in the model to write to the stream, the embedding being the "
            "first."
        ),
    ] = False
    carries: Annotated[
        Carries, Meta(description="normed: what goes on beside the branch is its normed input, not the stream.")
    ] = "stream"
    target: Annotated[
        Target,
        Meta(
            description="Where the output goes: stream, into the residual stream; replace_input, only the next branch "
            "sees it, instead of the stream; add_to_input, only the next branch sees it, added to the stream before "
            "its norm; layer_end, into the stream behind the last branch of the layer; other_streams, into every "
            "stream of streams but the first."
        ),
    ] = "stream"
    float32: Annotated[bool, Meta(description="Whether the stream is kept in float32 whatever the model's type.")] = (
        False
    )
    learned: Annotated[
        Learned,
        Meta(
            description="stream: a learned number per channel multiplies the stream at every branch; both: stream and "
            "output each have a learned shift and then a learned factor per channel; rate: instead of the sum there is "
            "x + |r|·(f(x) - x), with a learned rate r per channel."
        ),
    ] = "none"
    learned_scale: Annotated[
        Positive, Meta(description="Multiplies what is learned, which is stored divided by it.")
    ] = 1.0
    layer_scalar: Annotated[
        bool, Meta(description="Whether a stored number multiplies the stream at the end of the layer.")
    ] = False

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A rate takes the place of the sum, and of what would weigh its terms."""
        del around
        if self.learned == "rate" and (self.stream != 1 or self.branch != 1 or self.by_depth):
            message = "residual.learned: rate takes the place of the sum whose terms other fields weigh"
            yield Finding("E213", ("residual", "learned"), message, "leave out stream, branch and by_depth")

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


class Residual(Struct, frozen=True):
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
        return ("residual.target",) if self.target != "stream" else ()

    def tensors(self) -> tuple[Tensor, ...]:
        """Parameters that weigh the stream or the branch."""
        names: Mapping[Learned, tuple[str, ...]] = {
            "none": (),
            "stream": ("weight",),
            "both": ("stream_shift", "stream_factor", "branch_shift", "branch_factor"),
            "rate": ("rate",),
        }
        return tuple(Tensor(name, (self.channels,), "other") for name in names[self.learned])
