"""How the outputs of branches join the residual stream in a generated module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.naming import literal
from archc.parts.residual import Learned, Residual

_NAMES: Mapping[Learned, str] = {"stream": "WeighedStream", "both": "WeighedSum", "rate": "LearnedRate"}


@dataclass(frozen=True, slots=True)
class ResidualCall:
    """The call that makes a module that adds with learned weights."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResidualClass:
    """A class to print that adds with learned weights; `scaled` where some uses multiply what is learned."""

    learned: Learned
    scaled: bool

    @property
    def name(self) -> str:
        """Its name."""
        return _NAMES[self.learned]

    @property
    def scale(self) -> str:
        """What multiplies each learned number in a formula."""
        return "self.scale * " if self.scaled else ""


class Residuals:
    """The classes that the residuals of a model need."""

    def __init__(self, residuals: Iterable[Residual]) -> None:
        scaled: dict[Learned, bool] = {}
        for residual in residuals:
            if residual.learned != "none":
                scaled[residual.learned] = scaled.get(residual.learned, False) or residual.learned_scale != 1
        self.classes = tuple(ResidualClass(learned, found) for learned, found in scaled.items())

    def call(self, residual: Residual) -> ResidualCall | None:
        """How the module is made that adds with learned weights, where there are any."""
        for each in self.classes:
            if each.learned == residual.learned:
                return ResidualCall(each.name, (literal(residual.learned_scale),) if each.scaled else ())
        return None


def times(factor: float, expression: str) -> str:
    """An expression times a factor that the spec states."""
    return expression if factor == 1 else f"{literal(factor)} * {expression}"


def sum_of(residual: Residual, outputs: Sequence[str]) -> str:
    """The stream and the outputs of branches that have read it together, each with its factor."""
    together = " + ".join(outputs)
    if residual.branch != 1 and len(outputs) > 1:
        together = f"({together})"
    return f"{times(residual.stream, 'x_BTD')} + {times(residual.branch, together)}"
