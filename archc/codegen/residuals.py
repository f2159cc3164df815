"""How the outputs of branches join the residual stream in a generated module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.constants import Constant
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
        found = list(residuals)
        scaled: dict[Learned, bool] = {}
        for residual in found:
            if residual.learned != "none":
                scaled[residual.learned] = scaled.get(residual.learned, False) or residual.learned_scale != 1
        self.classes = tuple(ResidualClass(learned, each) for learned, each in scaled.items())
        self._stream = {residual.stream for residual in found} - {1}
        self._branch = {residual.branch for residual in found} - {1}

    def constants(self) -> Iterator[Constant]:
        """Factors of the stream and of what is added to it, where a single one stands in the code."""
        if len(self._stream) == 1:
            yield Constant("STREAM_FACTOR", literal(*self._stream), "multiplies the stream at a branch")
        if len(self._branch) == 1:
            yield Constant("BRANCH_FACTOR", literal(*self._branch), "multiplies what a branch adds to the stream")

    def stream(self, residual: Residual) -> str:
        """The stream, with its factor."""
        if residual.stream == 1:
            return "x_BTD"
        return f"{'STREAM_FACTOR' if len(self._stream) == 1 else literal(residual.stream)} * x_BTD"

    def branch(self, residual: Residual, output: str) -> str:
        """What a branch adds to it, with its factor."""
        if residual.branch == 1:
            return output
        return f"{'BRANCH_FACTOR' if len(self._branch) == 1 else literal(residual.branch)} * {output}"

    def sum_of(self, residual: Residual, outputs: Sequence[str]) -> str:
        """The stream and the outputs of branches that have read it together, each with its factor."""
        together = " + ".join(outputs)
        if residual.branch != 1 and len(outputs) > 1:
            together = f"({together})"
        return f"{self.stream(residual)} + {self.branch(residual, together)}"

    def call(self, residual: Residual) -> ResidualCall | None:
        """How the module is made that adds with learned weights, where there are any."""
        for each in self.classes:
            if each.learned == residual.learned:
                return ResidualCall(each.name, (literal(residual.learned_scale),) if each.scaled else ())
        return None
