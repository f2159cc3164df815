"""A dense feed-forward in a generated module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from archc.codegen.constants import Constant
from archc.codegen.naming import Variant, literal
from archc.codegen.norms import Norms
from archc.codegen.part_view import FfnView
from archc.parts.feed_forward import FeedForward

ACTIVATIONS = {
    "silu": "F.silu({})",
    "gelu": "F.gelu({})",
    "gelu_tanh": 'F.gelu({}, approximate="tanh")',
    "relu": "F.relu({})",
    "relu2": "F.relu({}).square()",
}


@dataclass(frozen=True, slots=True)
class FeedForwardView(FfnView[FeedForward]):
    """One feed-forward class."""

    @classmethod
    def of(cls, variant: Variant[FeedForward], norms: Norms) -> Self:
        """The view of a feed-forward."""
        del norms
        return cls(f"{variant.class_prefix}FeedForward", variant.constant_prefix, variant.value)

    @property
    def sizes(self) -> Iterator[Constant]:
        """Its width."""
        yield Constant(f"{self.constants}FFN_WIDTH", literal(self.part.width))

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        if self.part.gated:
            return "Two matrices widen, one of them a gate for the other; a third narrows."
        return "One matrix widens, one narrows."

    @staticmethod
    def words(part: FeedForward) -> str:
        """What the header says of it."""
        kind = "gated feed-forward" if part.gated else "feed-forward"
        return f"{kind} of width {part.width:,}, {part.activation}" + ("; with biases" if part.bias else "")

    def activated(self, expression: str) -> str:
        """The activation of an expression."""
        return ACTIVATIONS[self.part.activation].format(expression)
