"""Two residual streams, of which branches read and write one in turn (Gomez et al. 2017; Reformer, 2020)."""

from __future__ import annotations

from typing import ClassVar

from archc.parts.base import Fields
from archc.parts.streams import Streams


class ReversibleFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="reversible"):
    """`streams: {kind: reversible}`.

    Both streams begin as the embedded tokens. The first branch of a layer reads the second and adds to the first, the
    next reads the first and adds to the second, and so on. At the end they stand side by side: the final norm and
    the head have twice hidden_size channels (transformers 5.24, models/reformer/modeling_reformer.py).
    """

    kind: ClassVar[str] = "reversible"
    count: ClassVar[int] = 2
    ends: ClassVar[int] = 2

    def build(self, hidden_size: int) -> Reversible:
        """The streams that the fields declare."""
        del hidden_size
        return Reversible()


class Reversible(Streams, frozen=True):
    """Two streams, without parameters."""

    kind = "reversible"
