"""Several residual streams: what a branch reads of them, and how its output joins them.

Hyper-connections (Zhu et al. 2024; DeepSeek-V4, 2026): every branch reads a weighted sum of `count` streams, and its
output is added to each of them by a weight; the streams may be mixed with one another. All weights come from the
streams themselves, side by side and divided by their root mean square, by one projection per branch (transformers
5.24, models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4HyperConnection).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from archc.parts.base import Fields, Positive, Small, Tensor


class Streams(Struct, frozen=True):
    """What several residual streams ask of the layers between which they run: nothing, where not overridden."""

    kind: ClassVar[str]
    """The language's name for them."""

    def branch_tensors(self, readings: int) -> Iterator[Tensor]:
        """Parameters of one branch, with so many inputs that may each be read in a way of their own."""
        del readings
        yield from ()

    def layer_tensors(self) -> Iterator[Tensor]:
        """Parameters of one layer, beside those of its branches."""
        yield from ()

    def model_tensors(self) -> Iterator[Tensor]:
        """Parameters that the model has once, where streams begin or end."""
        yield from ()

    def branch_flops(self) -> int:
        """Operations per token in matrix products, of one branch."""
        return 0

    def layer_flops(self) -> int:
        """Those of one layer, beside its branches."""
        return 0

    def model_flops(self) -> int:
        """Those where streams begin or end."""
        return 0


class HyperConnectionFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="hyper_connections"):
    """`streams: {kind: hyper_connections}`."""

    kind: ClassVar[str] = "hyper_connections"
    ends: ClassVar[int] = 1
    count: Annotated[
        int,
        Meta(
            gt=0,
            le=2**10,
            description="Residual streams, all of hidden_size channels. They begin as copies of the embedded tokens "
            "and end as one weighted sum.",
        ),
    ]
    mixing: Annotated[
        Literal["none", "sinkhorn"],
        Meta(
            description="How streams are mixed with one another at a branch: not at all, or by a matrix that "
            "Sinkhorn's iteration makes doubly stochastic."
        ),
    ]
    iterations: Annotated[
        Annotated[int, Meta(gt=0, le=10_000)] | None, Meta(description="Iterations of Sinkhorn's.")
    ] = None
    eps: Annotated[
        Small, Meta(description="Added to the weights by which a branch reads, and to sums that are divided by.")
    ]
    write_scale: Annotated[
        Positive, Meta(description="A branch writes to each stream by this times a sigmoid of the projection.")
    ] = 2.0
    write_eps: Annotated[bool, Meta(description="Whether eps is added to the weights of writing, too.")] = False

    def build(self, hidden_size: int) -> HyperConnections:
        """The streams that the fields declare."""
        return HyperConnections(self, hidden_size)


class HyperConnections(Streams, frozen=True):
    """`count` streams with weights for reading, writing and mixing at every branch."""

    fields: HyperConnectionFields
    hidden_size: int

    kind = "hyper_connections"

    @property
    def _mixed(self) -> bool:
        return self.fields.mixing != "none"

    @property
    def _projection(self) -> tuple[int, int]:
        """[weights of reading, writing and mixing, all streams side by side]."""
        count = self.fields.count
        return (2 + (count if self._mixed else 0)) * count, count * self.hidden_size

    def branch_tensors(self, readings: int) -> Iterator[Tensor]:
        """The projection, an offset for each of its outputs, and a scale for each use; all inputs are one."""
        del readings
        yield Tensor("projection", self._projection, "other")
        yield Tensor("offset", self._projection[:1], "other")
        yield Tensor("scale", (3 if self._mixed else 2,), "other")

    def model_tensors(self) -> Iterator[Tensor]:
        """What weighs the streams at the end."""
        count = self.fields.count
        yield Tensor("projection", (count, count * self.hidden_size), "other")
        yield Tensor("offset", (count,), "other")
        yield Tensor("scale", (1,), "other")

    def branch_flops(self) -> int:
        """The projection, and mixing: 2 × count² × D. Reading and writing are sums with weights, and left out."""
        rows, width = self._projection
        return 2 * rows * width + (2 * self.fields.count * width if self._mixed else 0)

    def model_flops(self) -> int:
        """The projection at the end."""
        return 2 * self.fields.count**2 * self.hidden_size
