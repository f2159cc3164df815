"""A dense feed-forward in a generated module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from archc.codegen.constants import Constant
from archc.codegen.glu import ACTIVATIONS, Halves
from archc.codegen.naming import LINE, Names, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import FfnView
from archc.parts.additions import GatedFactorFields
from archc.parts.feed_forward import FeedForward
from archc.parts.glu import GluFields


@dataclass(frozen=True, slots=True)
class FeedForwardView(FfnView[FeedForward]):
    """A feed-forward; `width` is the constant of its width.

    Feed-forwards that differ in nothing else share a class, which is `sized` then: given the width.
    """

    width: str
    inner_norm: NormCall | None
    sized: bool = field(default=False, kw_only=True)

    @classmethod
    def of(cls, part: FeedForward, names: Names, norms: Norms) -> Self:
        """The view of a feed-forward, with the name of the norm that it calls."""
        width = names.FFN_WIDTH
        inner_norm = norms.call(part.inner_norm, width) if part.inner_norm else None
        return cls(names.class_("FeedForward"), names, part, width, inner_norm)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the call that makes it is given."""
        return (self.width,) if self.sized else ()

    @property
    def size(self) -> str:
        """Its width, as its class reads it."""
        return "width" if self.sized else self.width

    @property
    def norm_arguments(self) -> tuple[str, ...]:
        """What makes the norm before its last matrix, if there is one."""
        arguments = self.inner_norm.arguments if self.inner_norm else ()
        return tuple(self.size if argument == self.width else argument for argument in arguments)

    @property
    def text(self) -> tuple[object, ...]:
        """All that its class prints, but for its name and width."""
        part, norm = self.part, self.inner_norm
        parts = (part.gated, part.bias, part.activation, part.factors)
        return (*parts, norm and norm.function, replace(self, sized=True).norm_arguments, *self.body)

    @property
    def sizes(self) -> Iterator[Constant]:
        """Its width, and the numbers that its statements read."""
        part = self.part
        yield Constant(self.width, literal(part.width))
        yield from self._halves.sizes() if part.gated else ()
        if part.factors is not None and part.factors.output != 1:
            yield Constant(self.names.FFN_OUTPUT_FACTOR, literal(part.factors.output))

    @property
    def soft_caps(self) -> bool:
        """Whether a half is capped."""
        return soft_capped(self.part.glu)

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
        text = f"{kind} of width {part.width:,}, {activation_words(part.activation)}"
        text += "; with biases" if part.bias else ""
        text += glu_words(part.glu) + _factor_words(part.factors)
        return text + ("; a norm stands before the last matrix" if part.inner_norm else "")

    @property
    def body(self) -> Iterator[str]:
        """The statements of its forward pass."""
        hidden = ACTIVATIONS[self.part.activation].format("self.up(x_BTD)")
        if self.part.gated:
            yield from self._halves.statements()
            hidden = self._halves.product
        factors = self.part.factors or GatedFactorFields()
        outer = f" * {self.names.FFN_OUTPUT_FACTOR}" if factors.output != 1 else ""
        outer += " * self.output_factor" if factors.learned_output else ""
        last = f"return self.down({hidden}){outer}"
        if self.inner_norm or outer or 8 + len(last) > LINE:
            yield f"hidden_BTF = {f'self.inner_norm({hidden})' if self.inner_norm else hidden}"
            last = f"return self.down(hidden_BTF){outer}"
        yield last

    @property
    def _halves(self) -> Halves:
        part = self.part
        return Halves(
            gate="self.gate(x_BTD)",
            up="self.up(x_BTD)",
            input="x_BTD",
            suffix="BTF",
            indent=8,
            names=self.names,
            activation=part.activation,
            glu=part.glu or GluFields(),
            factors=part.factors or GatedFactorFields(),
        )


def soft_capped(glu: GluFields | None) -> bool:
    """Whether a half is capped."""
    return glu is not None and (glu.gate_softcap is not None or glu.up_softcap is not None)


def activation_words(activation: str) -> str:
    """What the header says of an activation."""
    return "xielu with learned slopes" if activation == "xielu" else activation


def glu_words(glu: GluFields | None) -> str:
    """What the header says of what happens around the product of two halves."""
    if glu is None:
        return ""
    text = ""
    if glu.limit is not None:
        gate = "the gate" if glu.limited == "before_activation" else "the activated gate"
        text += f"; {gate} is at most {glu.limit:g}, the other half lies within ±{glu.limit:g}"
    if glu.slope != 1:
        text += f"; the gate is multiplied by {glu.slope:g} inside its sigmoid"
    if glu.gate_softcap is not None:
        text += f"; the gate is capped at {glu.gate_softcap:g} outside its sigmoid"
    if glu.up_softcap is not None:
        text += f"; the other half is capped at {glu.up_softcap:g}"
    if glu.up_shift:
        text += f"; {glu.up_shift:g} is added to the half that the gate multiplies"
    return text + ("; their product is worked out in float32" if glu.float32 else "")


def _factor_words(factors: GatedFactorFields | None) -> str:
    if factors is None:
        return ""
    text = f"; the gate is multiplied by {factors.gate:g}" if factors.gate != 1 else ""
    if factors.learned is not None:
        text += f"; learned factors, times {factors.learned:g}, multiply every channel of both halves"
    text += f"; the output is multiplied by {factors.output:g}" if factors.output != 1 else ""
    return text + ("; one learned number multiplies the output" if factors.learned_output else "")


def sharing(views: Sequence[FeedForwardView]) -> list[FeedForwardView]:
    """The same feed-forwards, of which those that differ in their widths alone share the class of the first."""
    alike: dict[tuple[object, ...], list[FeedForwardView]] = {}
    for view in views:
        alike.setdefault(view.text, []).append(view)
    shared = {key: found[0].name for key, found in alike.items() if len({view.width for view in found}) > 1}
    return [replace(v, name=shared[v.text], sized=True) if v.text in shared else v for v in views]
