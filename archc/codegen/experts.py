"""A mixture of experts in a generated module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from archc.codegen.constants import Constant
from archc.codegen.feed_forward import FeedForwardView, activation_words, glu_words, soft_capped
from archc.codegen.glu import ACTIVATIONS, Halves
from archc.codegen.naming import LINE, Names, literal
from archc.codegen.norms import Norms
from archc.codegen.part_view import FfnView
from archc.codegen.routing import RouterView, router_words
from archc.parts.additions import GatedFactorFields
from archc.parts.experts import Experts
from archc.parts.glu import GluFields

_INDENT = 12
"""Where the statements of one expert stand."""


class SharedExpertView(FeedForwardView):
    """The class of a shared expert."""

    @property
    def summary(self) -> str:
        """The docstring of the class. Where it is that of dense layers, too, it is theirs."""
        return super().summary if self.sized else "The expert that every token passes through."


@dataclass(frozen=True, slots=True)
class ExpertsView(FfnView[Experts]):
    """One mixture class, its router, and the class of its shared expert."""

    router: RouterView
    shared: FeedForwardView | None

    @classmethod
    def of(cls, part: Experts, names: Names, norms: Norms) -> Self:
        """The view of a mixture, with the name of the norm that its router calls."""
        norm = norms.call(part.router_norm, "WIDTH") if part.router_norm else None
        shared = None
        if part.shared is not None:
            shared = SharedExpertView(
                names.class_("SharedExpert"), names.below("SHARED_"), part.shared, names.SHARED_WIDTH, None
            )
        router = RouterView(names, part.router, part.experts, part.top_k, norm)
        return cls(names.class_("Experts"), names, part, router, shared)

    @property
    def choice(self) -> RouterView:
        """Its router."""
        return self.router

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes of the experts and of the choice."""
        part, c = self.part, self.names
        yield Constant(c.EXPERTS, literal(part.experts))
        yield Constant(c.TOP_K, literal(part.top_k), "experts a token is sent to")
        yield Constant(c.EXPERT_WIDTH, literal(part.width))
        yield from self.router.sizes()
        yield from self._halves.sizes() if part.gated else ()
        yield from self.shared.sizes if self.shared else ()

    @property
    def soft_caps(self) -> bool:
        """Whether logits of the router are capped, or a half."""
        shared = self.shared is not None and self.shared.soft_caps
        return self.router.soft_caps or shared or soft_capped(self.part.glu)

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        part = self.part
        return f"A router sends each token to {part.top_k} of {part.experts} feed-forwards and weighs their outputs."

    @staticmethod
    def words(part: Experts) -> str:
        """What the header says of it."""
        text = f"{part.top_k} of {part.experts} experts of width {part.width:,} per token, "
        text += activation_words(part.activation) + (", gated" if part.gated else "")
        text += {"none": "", "experts": ", with biases", "sum": ", with a bias on the sum of their outputs"}[part.bias]
        text += f"{glu_words(part.glu)}; {router_words(part.router)}"
        if part.shared is None:
            return text
        text += f"; a shared expert of width {part.shared.width:,}" + (", with biases" if part.shared.bias else "")
        text += glu_words(part.shared.glu) if part.shared.glu != part.glu else ""
        return text + ("; the output is the mean of both" if part.shared_average else "")

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of what reads an expert's input."""
        return ("gate", "up") if self.part.gated else ("up",)

    @property
    def stacks(self) -> Iterator[str]:
        """The statements that find the matrices, and biases, of all experts that this process holds."""
        for name in (*self.matrices, "down"):
            yield f"{name}_{_axes(name)} = held(self.{name})"
            if self.part.bias == "experts":
                yield f"{name}_bias_{_axes(name)[:2]} = held(self.{name}_bias)"

    @property
    def hidden(self) -> Iterator[str]:
        """The statements that take `x_D`, the tokens sent to an expert, to what its last matrix reads."""
        if self.part.gated:
            yield from self._halves.statements()
            yield f"hidden_F = {self._halves.product}"
            return
        activation, up = ACTIVATIONS[self.part.activation], self._projection("x_D", "up")
        at_once = f"hidden_F = {activation.format(up)}"
        if _INDENT + len(at_once) <= LINE:
            yield at_once
        else:
            yield f"hidden_F = {up}"
            yield f"hidden_F = {activation.format('hidden_F')}"

    @property
    def added(self) -> Iterator[str]:
        """The statements that add what an expert makes of `hidden_F` to the outputs of its tokens."""
        yield f"out_D = {self._projection('hidden_F', 'down')}"
        if self.part.router.weighs == "input":
            yield "y_ND = y_ND.index_add(0, token, out_D)"
        elif self.router.rounded:
            yield "y_ND = y_ND.index_add(0, token, out_D * weight_NA[token, choice, None])"
        else:
            yield "out_D = (out_D * weight_NA[token, choice, None]).to(x_D.dtype)"
            yield "y_ND = y_ND.index_add(0, token, out_D)"

    @property
    def sum(self) -> Iterator[str]:
        """The statements that return everything that a token gets, of `y_ND`, what its experts give."""
        shared = "self.shared(x_BTD)"
        if self.part.shared_gate:
            shared = f"self.shared_gate(x_BTD).sigmoid() * {shared}"
        if self.part.shared_average or self.part.shared_gate:
            yield "y_BTD = y_ND.view_as(x_BTD)"
            total = f"y_BTD + {shared}"
            yield f"return ({total}) / 2" if self.part.shared_average else f"return {total}"
        else:
            yield f"return y_ND.view_as(x_BTD) + {shared}"

    @property
    def _halves(self) -> Halves:
        part = self.part
        return Halves(
            gate=self._projection("x_D", "gate"),
            up=self._projection("x_D", "up"),
            input="x_D",
            suffix="F",
            indent=_INDENT,
            names=self.names,
            activation=part.activation,
            glu=part.glu or GluFields(),
            factors=GatedFactorFields(),
        )

    def _projection(self, source: str, name: str) -> str:
        bias = f", {name}_bias_{_axes(name)[:2]}[expert]" if self.part.bias == "experts" else ""
        return f"linear({source}, {name}_{_axes(name)}[expert]{bias})"


def _axes(name: str) -> str:
    """The dimensions of the matrices of all experts."""
    return "EDF" if name == "down" else "EFD"
