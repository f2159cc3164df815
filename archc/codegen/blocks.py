"""Blocks of a generated module: which parts they hold, and how branches join the residual stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import chain
from typing import Any, Literal

from archc.architecture.model import Branch, Layer
from archc.codegen.by_kind import chosen
from archc.codegen.inputs import Input
from archc.codegen.naming import LINE, LONGEST_CLASS_PREFIX, Variant, fitted, variants
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.residuals import ResidualCall, Residuals
from archc.parts.base import Part
from archc.parts.norm import Norm
from archc.parts.residual import Residual

Place = tuple[int, Literal["before", "behind"]]
"""That of a norm: the number of its branch, and on which side of the part it stands."""
PartViews = Mapping[Part, MixerView[Any] | FfnView[Any]]
_METHOD = 8
"""Columns that the body of a method is indented by."""
_ALTERNATIVES = 2
_NO_NORM = NormCall("nn.Identity", ())


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
    factors: Residuals
    """What multiplies the stream and its output."""
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
        yield Member(self.slot, self.part.name, ("layer",) if isinstance(self.part, MixerView) else self.part.arguments)
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

    def arguments(self, routing: str) -> tuple[str, ...]:
        """What its part is given; `routing` is what a router gets that tells the load-balancing loss its choices."""
        read = self.normed or (f"self.{self.slot}_norm({self.reads})" if self.norm else self.reads)
        if isinstance(self.part, MixerView):
            return (read, *self.part.inputs, "cache", *(["routing"] if self.part.routed else []))
        return (read, routing) if routing else (read,)

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
    def added_at_once(self) -> bool:
        """Whether its output is added as its part, or its norm, gives it."""
        return not (self.beside or self.residual or self.writes or self.branch.norm_on_sum)

    def statements(self, routing: str) -> Iterator[str]:
        """The statements that make its output, but for the call that `sums` holds."""
        if self.normed:
            read = f"{self.normed} = self.{self.slot}_norm({self.reads})"
            yield f"{read}  # the stream goes on normed" if self.norms_stream else read
        if self.norms_output or not self.added_at_once:
            yield fitted(_METHOD, f"{self.output} = self.{self.slot}", self.arguments(routing))
        if self.norms_output and not self.added_at_once:
            yield f"y_BTD = self.{self.slot}_post_norm(y_BTD)"
        if self.writes:
            yield f"x_BTD, y_BTD = weighed_by_depth(x_BTD, y_BTD, {self.writes})"

    @property
    def plain(self) -> bool:
        """Whether it is a feed-forward beside attention whose output is added as it is."""
        more = self.norms_output or self.writes or self.residual or self.branch.norm_on_sum
        return self.beside and not more and isinstance(self.part, FfnView)

    def call(self, routing: str) -> str:
        """The call of its part."""
        return f"self.{self.slot}({', '.join(self.arguments(routing))})"

    def _last(self, routing: str) -> tuple[str, tuple[str, ...]]:
        """The call that gives what it adds: that of its part, or of the norm behind that."""
        if self.norms_output:
            return f"self.{self.slot}_post_norm", ("y_BTD",)
        return f"self.{self.slot}", self.arguments(routing)

    def sums(self, routing: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What the stream becomes behind it, step by step: functions and their arguments, or expressions without."""
        residual, norm = self.branch.residual, f"self.{self.slot}_post_norm"
        if self.residual:
            both = (self.factors.stream(residual), self.factors.branch(residual, "y_BTD"))
            yield f"self.{self.slot}_residual", both
            if self.branch.norm_on_sum:
                yield norm, ("x_BTD",)
        elif self.branch.norm_on_sum:
            yield norm, (self.factors.sum_of(residual, ["y_BTD"]),)
        elif self.added_at_once:
            function, arguments = self._last(routing)
            yield self.factors.sum_of(residual, [function]), arguments
        else:
            yield self.factors.sum_of(residual, ["y_BTD"]), ()


@dataclass(frozen=True, slots=True)
class BlockForm:
    """The layers of one form, and how they are printed where they have a class of their own."""

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
    def complete(self) -> bool:
        """Whether nothing stands in the place of a norm."""
        return all(member.function != _NO_NORM.function for member in self.members)

    @property
    def routed(self) -> BranchView | None:
        """The branch with experts, which tells the load-balancing loss what it chooses."""
        found = (branch for branch in self.branches if branch.part.routed and not isinstance(branch.part, MixerView))
        return next(found, None)

    @property
    def by_depth(self) -> bool:
        """Whether its sums ask how deep it stands."""
        return any(branch.writes for branch in self.branches)

    @property
    def float32_stream(self) -> bool:
        """Whether the stream is in float32 where its parts may not be."""
        return self.layer.branches[0].residual.float32

    @property
    def scaled(self) -> bool:
        """Whether a stored number multiplies what it returns."""
        return self.layer.branches[-1].residual.layer_scalar

    def body(self, routing: str) -> Iterator[str]:
        """The statements of its forward pass; `routing` is what experts get beside what they read."""
        if self.float32_stream:
            yield "dtype = next(self.parameters()).dtype  # the stream is in float32"
        for given in self._promised:
            yield f"assert {given.name} is not None  # {given.reason}"
        if self.norm and self.layer.branches[0].residual.carries == "normed":
            yield "x_BTD = self.norm(x_BTD)  # the stream goes on normed"
        elif self.norm:
            yield f"y_BTD = self.norm({_read_of(self.layer)})"
        for branch in self.branches:
            yield from () if branch is self._inlined(routing) else branch.statements(routing)
            yield from self._sums(branch, routing)

    @property
    def _promised(self) -> list[Input]:
        """Inputs that other layers have not, and its mixer is always given."""
        mixers = [branch.part for branch in self.branches if isinstance(branch.part, MixerView)]
        used = {name for mixer in mixers for name in mixer.inputs if name not in mixer.optional}
        return [given for given in self.inputs if given.optional and given.name in used]

    def _sums(self, branch: BranchView, routing: str) -> Iterator[str]:
        """The statements behind a branch that say what the stream becomes; the last of all returns it."""
        found = [] if branch.beside else list(branch.sums(routing))
        last = branch is self.branches[-1]
        if last and branch.beside:
            found.append((self._together(routing, self._inlined(routing)), ()))
        if last and self.scaled:
            found.append(("self.scalar * x_BTD", ()))
        for number, (function, arguments) in enumerate(found, 1):
            line = f"{'return' if last and number == len(found) else 'x_BTD ='} {function}"
            yield fitted(_METHOD, line, arguments) if arguments else line

    def _together(self, routing: str, inlined: BranchView | None) -> str:
        """The sum of branches side by side: of variables, but for the one whose call stands in the sum."""
        outputs = (branch.call(routing) if branch is inlined else branch.output for branch in self.branches)
        return self.branches[-1].factors.sum_of(self.branches[-1].branch.residual, list(outputs))

    def _inlined(self, routing: str) -> BranchView | None:
        """The last of branches side by side, if its call fits into their sum."""
        last = self.branches[-1]
        fits = _METHOD + len(f"return {self._together(routing, last)}") <= LINE
        return last if last.plain and fits else None

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


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block class: the forms of its layers, by kind, which hold different modules and do the same with them."""

    name: str
    forms: Mapping[str, BlockForm]

    @property
    def form(self) -> BlockForm:
        """Any of them, to ask what holds of all."""
        return next(iter(self.forms.values()))

    @property
    def parameters(self) -> list[str]:
        """What layers are given beside the stream and the cache."""
        return [given.parameter for given in self.form.inputs]

    @property
    def asks_kind(self) -> bool:
        """Whether some module is another in layers of another kind."""
        return any(len(set(calls.values())) > 1 for calls in self._members.values())

    @property
    def modules(self) -> Iterator[str]:
        """The statements that make its modules."""
        if self.form.by_depth:
            yield "self.layer = layer"
        if self.asks_kind:
            yield "kind = LAYER_KINDS[layer]"
        for name, calls in self._members.items():
            if len(set(calls.values())) == 1:
                member = next(iter(calls.values()))
                yield fitted(_METHOD, f"self.{name} = {member.function}", member.arguments)
            else:
                made = {kind: f"{member.function}({', '.join(member.arguments)})" for kind, member in calls.items()}
                yield chosen(_METHOD, f"self.{name}", made)

    @property
    def body(self) -> Iterator[str]:
        """The statements of its forward pass."""
        routed = [form.routed for form in self.forms.values() if form.routed]
        if not routed or len(routed) == len(self.forms):
            return self.form.body("routing" if routed else "")
        test = f"isinstance(self.{routed[0].slot}, {routed[0].part.name})"
        return chain((f"routed = (routing,) if {test} else ()",), self.form.body("*routed"))

    @property
    def _members(self) -> dict[str, dict[str, Member]]:
        """The call that makes each module, by kind."""
        found: dict[str, dict[str, Member]] = {}
        for kind, form in self.forms.items():
            for member in form.members:
                found.setdefault(member.name, {})[kind] = member
        return found

    def takes(self, form: BlockForm) -> bool:
        """Whether another form can share the class: it computes the same, with at most two modules for each name.

        Some form has all the norms of the class.
        """
        mine = self.form
        if not any(each.complete for each in (*self.forms.values(), form)):
            return False
        if (form.summary, form.scaled, [*form.body("")]) != (mine.summary, mine.scaled, [*mine.body("")]):
            return False
        calls = self._members
        theirs = {member.name: member for member in form.members}
        return theirs.keys() == calls.keys() and all(
            len({member, *calls[name].values()}) <= _ALTERNATIVES for name, member in theirs.items()
        )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def block_views(
    forms: Sequence[Variant[Layer]], parts: PartViews, norms: Norms, residuals: Residuals, inputs: Sequence[Input]
) -> list[BlockView]:
    """The block classes of layers in these forms; `parts` are the views of what layers hold.

    Where some layers lack a norm that others have, nothing stands in its place, if that saves a class.
    """
    layers = [form.value for form in forms]
    found = []
    for idle in (frozenset[Place](), _places_of_norms(layers)):
        made = [_block_form(layer, parts, norms, residuals, inputs, idle) for layer in layers]
        found.append(_shared(list(zip(forms, made, strict=True))))
    return min(found, key=len)


def _shared(forms: Sequence[tuple[Variant[Layer], BlockForm]]) -> list[BlockView]:
    """Classes for forms of layers, each the first that it can share."""
    classes: list[BlockView] = []
    for variant, form in forms:
        kinds = dict.fromkeys(variant.kinds, form)
        sharing = next((number for number, each in enumerate(classes) if each.takes(form)), None)
        if sharing is None:
            classes.append(BlockView("Block", kinds))
        else:
            classes[sharing] = replaced(classes[sharing], forms={**classes[sharing].forms, **kinds})
    numbers = ((kind, number) for number, each in enumerate(classes) for kind in each.forms)
    named = variants(numbers, LONGEST_CLASS_PREFIX)
    return [replaced(classes[each.value], name=f"{each.class_prefix}Block") for each in named]


def _places_of_norms(layers: Sequence[Layer]) -> frozenset[Place]:
    """Where some layer has a norm."""
    found: set[Place] = set()
    for number, branch in (each for layer in layers for each in enumerate(layer.branches)):
        if branch.pre_norm:
            found.add((number, "before"))
        if branch.post_norm:
            found.add((number, "behind"))
    return frozenset(found)


def _block_form(
    layer: Layer,
    parts: PartViews,
    norms: Norms,
    residuals: Residuals,
    inputs: Sequence[Input],
    idle: frozenset[Place],
) -> BlockForm:
    def norm_at(place: Place, norm: Norm | None, residual: Residual) -> NormCall | None:
        if norm is not None:
            return norms.call(norm, "WIDTH")
        return _NO_NORM if place in idle and residual.carries == "stream" else None

    shared = norms.call(layer.shared_norm, "WIDTH") if layer.shared_norm else None
    kept = shared and layer.branches[0].residual.carries == "stream"
    branches = []
    for number, branch in enumerate(layer.branches):
        branches.append(
            BranchView(
                branch=branch,
                part=parts[branch.parts[0][1]],
                norm=norm_at((number, "before"), branch.pre_norm, branch.residual),
                post_norm=norm_at((number, "behind"), branch.post_norm, branch.residual),
                residual=residuals.call(branch.residual),
                factors=residuals,
                beside=layer.parallel and len(layer.branches) > 1,
                reads="y_BTD" if kept else _read_of(layer),
                writes=_place(number, len(layer.branches)) if branch.residual.by_depth else None,
            )
        )
    return BlockForm(layer, shared, tuple(branches), inputs)


def _read_of(layer: Layer) -> str:
    """What is read of the stream: in float32 it is more than what weights of another type can take."""
    return "x_BTD.to(dtype)" if layer.branches[0].residual.float32 else "x_BTD"


def _place(number: int, branches: int) -> str:
    """The number of a branch among all that write to the stream; the first is the embedding."""
    layers_before = "self.layer" if branches == 1 else f"{branches} * self.layer"
    return f"{layers_before} + {number + 2}"
