"""Several residual streams that branches read through learned gates.

From transformers 5.24, models/qwen4_exp/modeling_qwen4_exp.py, Qwen4ExpTextGatedResidual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from archc.parts.base import Fields, Size, Tensor
from archc.parts.streams import Streams


class GatedStreamFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="gated"):
    """`streams: {kind: gated}`.

    With u the n streams, each normed by itself with a weight of its own, a branch reads the mean over streams of
    u · sigmoid(up(silu(down(u) / n))), channel by channel. Its output is added to stream s times 2·sigmoid(write(u)_s /
    n). Streams begin as copies of the embedded tokens and end as they are read, behind which no other norm stands.
    """

    kind: ClassVar[str] = "gated"
    ends: ClassVar[int] = 1
    count: Annotated[int, Meta(gt=0, le=2**10, description="Residual streams, all of hidden_size channels.")]
    rank: Annotated[Size, Meta(description="Channels between the two matrices that gate what is read.")]

    def build(self, hidden_size: int) -> GatedStreams:
        """The streams that the fields declare."""
        return GatedStreams(self, hidden_size)


class GatedStreams(Streams, frozen=True):
    """`count` streams with a norm, a gate of low rank and weights for writing at every branch."""

    fields: GatedStreamFields
    hidden_size: int

    kind = "gated"

    @property
    def _width(self) -> int:
        return self.fields.count * self.hidden_size

    def _reading(self) -> Iterator[Tensor]:
        yield Tensor("norm.weight", (self._width,), "norm")
        yield Tensor("down.weight", (self.fields.rank, self._width), "other")
        yield Tensor("up.weight", (self._width, self.fields.rank), "other")

    def branch_tensors(self, readings: int) -> Iterator[Tensor]:
        """A norm of all streams, the gate [rank, n·D] and [n·D, rank], and weights of writing [n, n·D]."""
        del readings
        yield from self._reading()
        yield Tensor("write.weight", (self.fields.count, self._width), "other")

    def model_tensors(self) -> Iterator[Tensor]:
        """What reads the streams at the end."""
        yield from self._reading()

    def branch_flops(self) -> int:
        """Both projections of the gate, and that of writing."""
        return 2 * self._width * (2 * self.fields.rank + self.fields.count)

    def model_flops(self) -> int:
        """The gate at the end."""
        return 4 * self._width * self.fields.rank
