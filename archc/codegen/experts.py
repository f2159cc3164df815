"""A mixture of experts in a generated module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from archc.codegen.constants import Constant
from archc.codegen.feed_forward import ACTIVATIONS
from archc.codegen.naming import Variant, literal
from archc.codegen.norms import Norms
from archc.codegen.part_view import FfnView
from archc.parts.experts import Experts


@dataclass(frozen=True, slots=True)
class ExpertsView(FfnView[Experts]):
    """One mixture class, and that of its shared expert."""

    @classmethod
    def of(cls, variant: Variant[Experts], norms: Norms) -> Self:
        """The view of a mixture."""
        del norms
        return cls(f"{variant.class_prefix}Experts", variant.constant_prefix, variant.value)

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes of the experts and of the choice."""
        part, p = self.part, self.constants
        yield Constant(f"{p}EXPERTS", literal(part.experts))
        yield Constant(f"{p}TOP_K", literal(part.top_k), "experts a token is sent to")
        yield Constant(f"{p}EXPERT_WIDTH", literal(part.width))
        if part.router.scale != 1:
            yield Constant(f"{p}ROUTER_SCALE", literal(part.router.scale))
        if part.shared is not None:
            yield Constant(f"{p}SHARED_WIDTH", literal(part.shared.width))

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        part = self.part
        return f"A router sends each token to {part.top_k} of {part.experts} feed-forwards and weighs their outputs."

    @staticmethod
    def words(part: Experts) -> str:
        """What the header says of it."""
        text = f"{part.top_k} of {part.experts} experts of width {part.width:,} per token, {part.activation}"
        text += ", gated" if part.gated else ""
        text += f"; router: {part.router.score}, {part.router.order.replace('_', ' ')}"
        text += ", renormalised" if part.router.renormalize else ", not renormalised"
        return text + (f"; a shared expert of width {part.shared.width:,}" if part.shared else "")

    @property
    def shared_name(self) -> str:
        """The class of the shared expert."""
        return self.name.removesuffix("Experts") + "SharedExpert"

    def activated(self, expression: str) -> str:
        """The activation of an expression."""
        return ACTIVATIONS[self.part.activation].format(expression)
