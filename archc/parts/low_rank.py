"""Two matrices with few channels between them (LAuReL, Menghani et al. 2024)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import FfnPart, PartFields, Settled, Size, Tensor, linear
from archc.parts.norm import Norm


class LowRankFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: low_rank}`: up(down(x)), without anything between them."""

    kind: Literal["low_rank"]
    rank: Annotated[Size, Meta(description="Channels between the matrices.")]
    output_norm: Annotated[bool, Meta(description="Whether a norm, as in norm, stands behind the matrices.")] = False
    skip: Annotated[bool, Meta(description="Whether x is added to what they (and the norm) put out.")] = False

    def build(self, around: Settled) -> LowRank:
        """The branch that the fields declare."""
        norm = around.norm.build(around.hidden_size) if self.output_norm else None
        return LowRank(around.hidden_size, self.rank, norm, self.skip)


class LowRank(FfnPart, frozen=True):
    """Two matrices, [rank, hidden_size] and [hidden_size, rank]."""

    hidden_size: int
    rank: int
    norm: Norm | None
    skip: bool

    kind = "low_rank"

    @property
    def width(self) -> int:
        """Channels between the matrices."""
        return self.rank

    def tensors(self) -> tuple[Tensor, ...]:
        """Both matrices, and the norm behind them."""
        return (
            *linear("down", self.rank, self.hidden_size, False, "ffn"),
            *linear("up", self.hidden_size, self.rank, False, "ffn"),
            *(self.norm.tensors("output_norm") if self.norm else ()),
        )

    def linear_flops(self) -> int:
        """Two operations per weight."""
        return 4 * self.hidden_size * self.rank
