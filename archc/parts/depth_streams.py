"""A residual stream that starts anew every few layers, and attention over what it was at earlier depths.

From transformers 5.24, models/inkling2/modeling_inkling2.py, Inkling2BlockAttentionResidual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from archc.parts.base import Fields, Size, Tensor
from archc.parts.streams import Streams


class DepthFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="depths"):
    """`streams: {kind: depths}`.

    Every `layers` layers, behind a mixer, the stream so far is put aside as a depth and goes on as that mixer's output
    alone. A branch reads a mixture of the depths and the stream, each normed without weight (rms): softmax of its
    learned query's products with them, divided by sqrt(D). So does the final norm. A branch of attention that has three
    inputs mixes each by a query of its own.
    """

    kind: ClassVar[str] = "depths"
    ends: ClassVar[int] = 1
    count: ClassVar[int] = 1
    layers: Annotated[
        Size, Meta(description="Layers from one depth to the next; the first begins with the first layer.")
    ]

    def build(self, hidden_size: int) -> Depths:
        """The streams that the fields declare."""
        return Depths(hidden_size)


class Depths(Streams, frozen=True):
    """A learned query at every branch, and one at the end."""

    hidden_size: int

    kind = "depths"

    def branch_tensors(self, readings: int) -> Iterator[Tensor]:
        """A query [D] for each reading."""
        yield Tensor("query", (readings, self.hidden_size), "other")

    def model_tensors(self) -> Iterator[Tensor]:
        """The query at the end."""
        yield Tensor("query", (self.hidden_size,), "other")
