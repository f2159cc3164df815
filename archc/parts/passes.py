"""Layers that run several times: what happens between their passes.

The passes themselves are layers, written out in the pattern, whose branches share their parameters by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta, Struct

from archc.parts.base import Fields, Size, Tensor, linear

Times = Annotated[int, Meta(gt=0, le=10_000)]
First = Annotated[int, Meta(ge=0, le=10_000)]


class Passes(Protocol):
    """What stands between passes."""

    @property
    def kind(self) -> str:
        """The language's name for it."""

    def tensors(self) -> Iterator[Tensor]:
        """Parameters between passes, which all passes share."""

    def linear_flops(self) -> int:
        """Operations per token in matrix products, of all passes together."""


class RestartFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="restart"):
    """`passes: {kind: restart}`.

    Before every pass through the band of layers, the first one included, x becomes norm(x) + norm(y), y being the
    stream as it first came to the band (transformers 5.24, models/dory/modeling_dory.py, DoryModel.forward).
    """

    kind: ClassVar[str] = "restart"
    first: Annotated[First, Meta(description="Number of the first layer of the band.")]
    layers: Annotated[Times, Meta(description="Layers of the band.")]
    times: Annotated[Times, Meta(description="Passes through it, each of which the pattern writes out.")]

    def build(self, hidden_size: int) -> Restart:
        """What the fields declare."""
        del hidden_size
        return Restart()


class Restart(Struct, frozen=True):
    """Sums of normed streams."""

    kind = "restart"

    def tensors(self) -> Iterator[Tensor]:
        """None."""
        yield from ()

    def linear_flops(self) -> int:
        """None."""
        return 0


class AlternationFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="alternation"):
    """`passes: {kind: alternation}`.

    There are two stacks, each with a state of its own. The slow state begins as the embedded token, the fast one as a
    learned vector. The pattern runs the fast stack a number of times, then the slow one once, and so on. A stack reads
    the sum of both states; what comes out of it, normed as by the final norm, is its new state. The head reads the
    slow one (transformers 5.24, models/hrm_text/modeling_hrm_text.py, HrmTextModel.forward).
    """

    kind: ClassVar[str] = "alternation"
    layers: Annotated[Times, Meta(description="Layers of a stack.")]
    fast: Annotated[Times, Meta(description="Passes through the fast stack before each through the slow one.")]

    def build(self, hidden_size: int) -> Alternation:
        """What the fields declare."""
        return Alternation(hidden_size)


class Alternation(Struct, frozen=True):
    """Two stacks that take turns."""

    hidden_size: int

    kind = "alternation"

    def tensors(self) -> Iterator[Tensor]:
        """The first fast state."""
        yield Tensor("start", (self.hidden_size,), "other")

    def linear_flops(self) -> int:
        """None."""
        return 0


class MessageFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="messages"):
    """`passes: {kind: messages}`.

    Every pass begins with the stream as it first came to the band. From the second on, what a layer's queries, keys,
    values and feed-forward read, x, becomes (1 - tanh(f))·x + tanh(g)·m, with f and g projected from down([rms(x),
    rms(m)]), rms being a norm without weight. The message m of each of the four is found by a learned query among what
    the pass before has put aside and put out, each normed without weight (transformers 5.24, models/inkling2_loop).
    """

    kind: ClassVar[str] = "messages"
    first: Annotated[First, Meta(description="Number of the first layer of the band.")]
    layers: Annotated[Times, Meta(description="Layers of the band.")]
    times: Annotated[Times, Meta(description="Passes through it, each of which the pattern writes out.")]
    rank: Annotated[Size, Meta(description="Channels from which f and g are projected.")]

    def build(self, hidden_size: int) -> Messages:
        """What the fields declare."""
        return Messages(self, hidden_size)


class Messages(Struct, frozen=True):
    """Four gated messages to each layer of the band."""

    fields: MessageFields
    hidden_size: int

    kind = "messages"

    def _gate(self) -> Iterator[Tensor]:
        yield from linear("down", self.fields.rank, 2 * self.hidden_size, False, "other")
        yield from linear("forget", self.hidden_size, self.fields.rank, False, "other")
        yield from linear("take", self.hidden_size, self.fields.rank, False, "other")

    def tensors(self) -> Iterator[Tensor]:
        """The queries [layers, 4, D], and four gates for every layer of the band."""
        yield Tensor("query", (self.fields.layers, 4, self.hidden_size), "other")
        for layer in range(self.fields.layers):
            for reader in ("q", "k", "v", "ffn"):
                yield from (tensor.inside(f"{layer}.{reader}") for tensor in self._gate())

    def linear_flops(self) -> int:
        """Two operations per weight of the gates, from the second pass on; finding messages is left out."""
        gate = 2 * sum(tensor.size for tensor in self._gate())
        return (self.fields.times - 1) * self.fields.layers * 4 * gate


PassesFields = RestartFields | AlternationFields | MessageFields
