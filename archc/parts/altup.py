"""Alternating updates (Baykal et al. 2023): layers work on one of several streams, and correct guesses of them all.

From transformers 5.24, models/gemma3n/modeling_gemma3n.py, Gemma3nTextAltUp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from archc.parts.base import Fields, Tensor
from archc.parts.streams import Streams


class AltUpFields(Fields, frozen=True, kw_only=True, tag_field="kind", tag="altup"):
    """`streams: {kind: altup}`.

    A layer first guesses what becomes of every stream: itself, plus a weighted sum of all. Its branches work on the
    guess of the active one; what they add to it is added to every guess, by a weight of its own. The weights are
    projected from tanh(router(norm(active stream) / hidden_size)). A branch with the target other_streams comes after
    that, and reads the corrected active stream. Streams begin as the embedded tokens: the first as they are, each other
    through a matrix of its own; at the end each goes through another matrix, and their mean goes on. A stream that
    comes out of such a matrix is brought to the root mean square of the first.
    """

    kind: ClassVar[str] = "altup"
    ends: ClassVar[int] = 1
    count: Annotated[int, Meta(gt=0, le=2**10, description="Residual streams, all of hidden_size channels.")]
    active: Annotated[int, Meta(ge=0, lt=2**10, description="The stream that layers work on.")] = 0
    scaled: Annotated[
        bool,
        Meta(
            description="Whether what a branch with the target other_streams reads is multiplied by a learned vector, "
            "which is stored in any case."
        ),
    ] = True

    def build(self, hidden_size: int) -> AltUp:
        """The streams that the fields declare."""
        return AltUp(self, hidden_size)


class AltUp(Streams, frozen=True):
    """`count` streams that a layer guesses before, and corrects behind, its branches."""

    fields: AltUpFields
    hidden_size: int

    kind = "altup"

    @property
    def _count(self) -> int:
        return self.fields.count

    def layer_tensors(self) -> Iterator[Tensor]:
        """The router and its norm, the weights of guesses [n², n] and corrections [n, n], and the vector."""
        yield Tensor("router_norm.weight", (self.hidden_size,), "norm")
        yield Tensor("router.weight", (self._count, self.hidden_size), "other")
        yield Tensor("guess.weight", (self._count**2, self._count), "other")
        yield Tensor("correction.weight", (self._count, self._count), "other")
        yield Tensor("scale", (self.hidden_size,), "other")

    def model_tensors(self) -> Iterator[Tensor]:
        """A matrix at the start and one at the end, for every stream but the first."""
        for number in range(1, self._count):
            yield Tensor(f"first.{number}.weight", (self.hidden_size, self.hidden_size), "other")
            yield Tensor(f"last.{number}.weight", (self.hidden_size, self.hidden_size), "other")

    def layer_flops(self) -> int:
        """The router twice, guesses from its output and from the streams (2 · n² · D), and corrections."""
        router = 2 * self._count * self.hidden_size
        return 2 * router + 2 * self._count**3 + 2 * self._count**2 * (self.hidden_size + 1)

    def model_flops(self) -> int:
        """The matrices at both ends."""
        return 4 * (self._count - 1) * self.hidden_size**2
