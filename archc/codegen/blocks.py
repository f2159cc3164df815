"""Blocks of a generated module: which parts they hold, and how branches join the residual stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Branch, Layer
from archc.codegen.inputs import Input
from archc.codegen.naming import Variant, fitted
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.parts import MIXERS
from archc.codegen.residuals import ResidualCall, Residuals, sum_of, times
from archc.parts.base import MixerPart, Part

PartViews = Mapping[Part, MixerView[Any] | FfnView[Any]]


@dataclass(frozen=True, slots=True)
class Member:
    """A module that a block holds: `self.name = function(arguments)`."""

    name: str
    function: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchView:
    """What one branch reads, and what it does with the residual stream."""

    branch: Branch
    part: MixerView[Any] | FfnView[Any]
    norm: NormCall | None
    post_norm: NormCall | None
    residual: ResidualCall | None
    beside: bool
    """Whether the branches of its block all read the same."""
    reads: str
    """What it reads, before the norm of its own."""
    writes: str | None
    """Its number among all that write to the stream, an expression, where the sum asks for that."""

    @property
    def slot(self) -> str:
        """The name of its part, by which its norms are named too."""
        return self.branch.slot

    @property
    def members(self) -> Iterator[Member]:
        """Its modules, in the order of their use."""
        if self.norm:
            yield Member(f"{self.slot}_norm", self.norm.function, self.norm.arguments)
        yield Member(self.slot, self.part.name, ("layer",) if isinstance(self.part, MixerView) else ())
        if self.post_norm:
            yield Member(f"{self.slot}_post_norm", self.post_norm.function, self.post_norm.arguments)
        if self.residual:
            yield Member(f"{self.slot}_residual", self.residual.function, self.residual.arguments)

    @property
    def norms_stream(self) -> bool:
        """Whether what goes on beside it is its normed input."""
        return self.norm is not None and self.branch.residual.carries == "normed"

    @property
    def normed(self) -> str | None:
        """The variable that takes its normed input; None where the call of its part holds that of the norm."""
        if self.norms_stream:
            return "x_BTD"
        return "y_BTD" if self.norm and isinstance(self.part, MixerView) and not self.beside else None

    @property
    def arguments(self) -> tuple[str, ...]:
        """What its part is given."""
        read = self.normed or (f"self.{self.slot}_norm({self.reads})" if self.norm else self.reads)
        given = (*self.part.inputs, "cache") if isinstance(self.part, MixerView) else ()
        return (read, *given, "routing") if self.part.routed else (read, *given)

    @property
    def output(self) -> str:
        """The variable that takes its output."""
        if not self.beside:
            return "y_BTD"
        return "a_BTD" if isinstance(self.part, MixerView) else "f_BTD"

    @property
    def norms_output(self) -> bool:
        """Whether its output is normed before it is added."""
        return self.post_norm is not None and not self.branch.norm_on_sum

    @property
    def sums(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What the stream becomes behind it, step by step: functions and their arguments, or expressions without."""
        residual, norm = self.branch.residual, f"self.{self.slot}_post_norm"
        if self.residual:
            both = (times(residual.stream, "x_BTD"), times(residual.branch, "y_BTD"))
            yield f"self.{self.slot}_residual", both
            if self.branch.norm_on_sum:
                yield norm, ("x_BTD",)
        elif self.branch.norm_on_sum:
            yield norm, (sum_of(residual, ["y_BTD"]),)
        else:
            yield sum_of(residual, ["y_BTD"]), ()


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block class."""

    name: str
    layer: Layer
    norm: NormCall | None
    """The norm that its branches share."""
    branches: tuple[BranchView, ...]
    inputs: Sequence[Input]

    @property
    def members(self) -> Iterator[Member]:
        """The modules that it holds, in the order of their use."""
        if self.norm:
            yield Member("norm", self.norm.function, self.norm.arguments)
        for branch in self.branches:
            yield from branch.members

    @property
    def parameters(self) -> list[str]:
        """What the layers of the model are given beside the stream and the cache."""
        return [given.parameter for given in self.inputs]

    @property
    def promised(self) -> list[Input]:
        """Inputs that other blocks have not, and this block's mixer is given."""
        used = {name for branch in self.branches if isinstance(branch.part, MixerView) for name in branch.part.inputs}
        return [given for given in self.inputs if given.optional and given.name in used]

    @property
    def norms_stream(self) -> bool:
        """Whether what goes on beside its branches is what the norm that they share gives."""
        return self.layer.branches[0].residual.carries == "normed"

    @property
    def float32_stream(self) -> bool:
        """Whether the stream is in float32 where its parts may not be."""
        return self.layer.branches[0].residual.float32

    @property
    def reads(self) -> str:
        """What is read of the stream."""
        return _read_of(self.layer)

    @property
    def needs_math(self) -> bool:
        """Whether its sums ask how deep it stands, and take roots of that."""
        return any(branch.writes for branch in self.branches)

    @property
    def scaled(self) -> bool:
        """Whether a stored number multiplies what it returns."""
        return self.layer.branches[-1].residual.layer_scalar

    def sums(self, branch: BranchView) -> Iterator[str]:
        """The statements behind a branch that say what the stream becomes; the last of all returns it."""
        found = [] if branch.beside else list(branch.sums)
        last = branch is self.branches[-1]
        if last and branch.beside:
            found.append((sum_of(branch.branch.residual, [each.output for each in self.branches]), ()))
        if last and self.scaled:
            found.append(("self.scalar * x_BTD", ()))
        for number, (function, arguments) in enumerate(found, 1):
            line = f"{'return' if last and number == len(found) else 'x_BTD ='} {function}"
            yield fitted(8, line, arguments) if arguments else line

    @property
    def summary(self) -> str:
        """The class's docstring."""
        names = ["attention" if isinstance(branch.part, MixerView) else "a feed-forward" for branch in self.branches]
        if self.branches[0].beside:
            where = " behind one norm" if self.norm else ""
            if all(branch.norm for branch in self.branches):
                where = ", each behind a norm of its own"
            return f"{_capital(' and '.join(names).replace('a feed', 'feed'))} side by side{where}."
        each = "each " if len(names) > 1 else ""
        how = f", {each}added to the residual stream"
        if any(branch.branch.residual.learned == "rate" for branch in self.branches):
            how = "; the stream moves towards what they give"
        elif any(branch.branch.norm_on_sum for branch in self.branches):
            how = f"; the residual stream is normed behind {each or 'it'}".rstrip()
        return f"{_capital(', then '.join(names))}{how}."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def without_arguments(layer: Layer) -> Layer:
    """A layer without its kind and what its class is given from outside: layers equal in the rest share a class."""
    branches = (
        replace(branch, parts=tuple((slot, part_without_arguments(part)) for slot, part in branch.parts))
        for branch in layer.branches
    )
    return replace(layer, kind="", branches=tuple(branches))


def part_without_arguments(part: Part) -> Part:
    """The same of a part."""
    return mixer_without_arguments(part) if isinstance(part, MixerPart) else part


def mixer_without_arguments(part: MixerPart) -> MixerPart:
    """The same of a mixer."""
    found: MixerPart = MIXERS[type(part)].without_arguments(part)
    return found


def block_view(
    variant: Variant[Layer], parts: PartViews, norms: Norms, residuals: Residuals, inputs: Sequence[Input]
) -> BlockView:
    """The view of a block; `parts` are the views of what layers hold."""
    layer = variant.value
    shared = norms.call(layer.shared_norm, "WIDTH") if layer.shared_norm else None
    kept = shared and layer.branches[0].residual.carries == "stream"
    branches = [
        BranchView(
            branch=branch,
            part=parts[branch.parts[0][1]],
            norm=norms.call(branch.pre_norm, "WIDTH") if branch.pre_norm else None,
            post_norm=norms.call(branch.post_norm, "WIDTH") if branch.post_norm else None,
            residual=residuals.call(branch.residual),
            beside=layer.parallel and len(layer.branches) > 1,
            reads="y_BTD" if kept else _read_of(layer),
            writes=_place(number, len(layer.branches)) if branch.residual.by_depth else None,
        )
        for number, branch in enumerate(layer.branches)
    ]
    return BlockView(f"{variant.class_prefix}Block", layer, shared, tuple(branches), inputs)


def _read_of(layer: Layer) -> str:
    """What is read of the stream: in float32 it is more than what weights of another type can take."""
    return "x_BTD.to(dtype)" if layer.branches[0].residual.float32 else "x_BTD"


def _place(number: int, branches: int) -> str:
    """The number of a branch among all that write to the stream; the first is the embedding."""
    layers_before = "self.layer" if branches == 1 else f"{branches} * self.layer"
    return f"{layers_before} + {number + 2}"
