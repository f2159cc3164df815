"""What a generated model works out once and hands to its layers: rotary tables, visible keys, what depends on distance.

An input is one value where all layers agree, else a table by the kind of layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from archc.codegen.by_kind import chosen
from archc.codegen.caching import ALL
from archc.codegen.constants import Constant, with_names
from archc.codegen.naming import LINE, Names, Variant, fitted, literal, variants
from archc.codegen.rotation import RopeView, without_table
from archc.parts.attention import Attention
from archc.parts.attention_sections import QueryScaleFields
from archc.parts.base import MixerPart
from archc.parts.position import AlibiFields


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of blocks and mixers. `values` is its expression for every kind of layer, None where it has none.

    Layers that have one say why, where others have none: `reason`.
    """

    name: str
    annotation: str
    values: Mapping[str, str | None]
    reason: str = ""

    @property
    def by_kind(self) -> bool:
        """Whether it differs between kinds of layers."""
        return len(set(self.values.values())) > 1

    @property
    def statement(self) -> str | None:
        """What changes it for all layers, where they agree and it is not what the variable of its name holds."""
        value = next(iter(self.values.values()))
        return None if self.by_kind or value == self.name else _fitted_call(8, f"{self.name} = ", value or "None")

    @property
    def optional(self) -> bool:
        """Whether some layers have none."""
        return None in self.values.values()

    @property
    def parameter(self) -> str:
        """The parameter of a block."""
        return f"{self.name}: {self.annotation}" + (" | None" if self.optional else "")


@dataclass(frozen=True, slots=True)
class Handed:
    """How the loop over layers hands inputs to a block: statements before it and in it, and arguments."""

    before: tuple[str, ...]
    inside: tuple[str, ...]
    arguments: tuple[str, ...]
    asks_kind: bool


def handed(inputs: Sequence[Input]) -> Handed:
    """What is the same in all layers, then what is another in layers of another kind, together."""
    alike = [statement for given in inputs if (statement := given.statement)]
    differing = [number for number, given in enumerate(inputs) if given.by_kind]
    if not differing:
        return Handed(tuple(alike), (), tuple(given.name for given in inputs), asks_kind=False)
    first, end = differing[0], differing[-1] + 1
    span = inputs[first:end]
    name = span[0].name if len(span) == 1 else "inputs"
    groups = variants((kind, tuple(given.values[kind] or "None" for given in span)) for kind in span[0].values)
    before, inside, found = _chosen(name, groups)
    arguments = (
        *(given.name for given in inputs[:first]),
        found if len(span) == 1 else f"*{found}",
        *(given.name for given in inputs[end:]),
    )
    return Handed((*alike, *before), inside, arguments, asks_kind=True)


def _chosen(name: str, groups: Sequence[Variant[tuple[str, ...]]]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Statements before the loop and in it that find the inputs of a layer, and the expression for them."""
    kinds = [kind for group in groups for kind in group.kinds]
    if len(groups) == len(kinds):
        rows = (f"{literal(group.kinds[0])}: " for group in groups)
        table = "".join(f"{' ' * 12}{_given(12, *each, ',')}\n" for each in zip(rows, groups, strict=True))
        by_kind = f"{name.split('_', maxsplit=1)[0]}_by_kind"
        return (f"{by_kind} = {{\n{table}{' ' * 8}}}",), (), f"{by_kind}[kind]"
    names = [_plain(group) or f"{group.function_prefix}{name}" for group in groups]
    made = [(each, group) for each, group in zip(names, groups, strict=True) if not _plain(group)]
    before = tuple(_given(8, f"{each} = ", group) for each, group in made)
    values = {kind: each for each, group in zip(names, groups, strict=True) for kind in group.kinds}
    found = f"layer_{name}"
    return before, (chosen(12, found, values),), found


def _plain(group: Variant[tuple[str, ...]]) -> str | None:
    """The variable that is the only input of a group, which needs no other name."""
    return group.value[0] if len(group.value) == 1 and group.value[0].isidentifier() else None


def _given(indent: int, head: str, group: Variant[tuple[str, ...]], tail: str = "") -> str:
    """The inputs of a group behind the head of their line: one as it is, several as a tuple."""
    if len(group.value) == 1:
        return _fitted_call(indent, head, group.value[0], tail)
    line = fitted(indent, head, group.value, tail)
    if "\n" not in line:
        return line
    return fitted(
        indent, head, [_fitted_call(indent + 4, "", value, ",").removesuffix(",") for value in group.value], tail
    )


def _fitted_call(indent: int, head: str, value: str, tail: str = "") -> str:
    """A name, or the call of a function, behind the head of its line; its first argument alone may be a call."""
    function, _, arguments = value.partition("(")
    if not arguments:
        return f"{head}{value}{tail}"
    first, *others = _arguments(arguments.removesuffix(")"))
    line = fitted(indent, f"{head}{function}", (first, *others), tail)
    if max(map(len, line.split("\n"))) > LINE:
        first = _fitted_call(indent + 4, "", first, ",").removesuffix(",")
        return fitted(indent, f"{head}{function}", (first, *others), tail)
    return line


def _arguments(text: str) -> list[str]:
    """The arguments of a call, of which the first alone may be a call."""
    first, behind, others = text.rpartition("), ")
    return [f"{first})", *others.split(", ")] if behind else text.split(", ")


_SOME_GROWTH = QueryScaleFields(form="steps", strength=1.0, length=1)
_COUNTED = {"positions": "position_ids", "columns": "visible_BTS"}
_LENGTHS = {
    "steps": "positions after which queries grow by a step",
    "beyond": "positions beyond which queries grow",
    "power": "positions by which the growth of queries is measured",
}


def without_inputs(part: Attention) -> Attention:
    """An attention without which keys are visible, which table turns it, and what depends on distance: all inputs."""
    return replace(
        part,
        window=None,
        window_rows="dropped",
        chunk=None,
        rope=without_table(part.rope),
        alibi=AlibiFields(kind="alibi", scaled=part.alibi.scaled) if part.alibi else None,
        query_scale=_SOME_GROWTH if part.query_scale else None,
    )


_TURNED = ("head", "after_rope")


def bare(part: Attention) -> Attention:
    """The attention, as its class is printed, where heads do not turn and queries do not grow.

    Norms without weights that stand behind the turning belong to it.
    """
    part = without_inputs(part)
    if norms_turned(part):
        part = replace(part, q_norm=None, k_norm=None)
    order = part.qk_norm_order if part.q_norm else "before_rope"
    return replace(part, rope=None, query_scale=None, qk_norm_order=order)


def norms_turned(part: Attention) -> bool:
    """Whether norms without weights stand behind the turning of each head."""
    weightless = not any(norm.tensors("") for norm in part.head_norms)
    return bool(part.rope and part.head_norms and weightless) and (part.qk_norm_over, part.qk_norm_order) == _TURNED


@dataclass(frozen=True, slots=True)
class Sight:
    """How far back a query sees: a number of positions, or to the first of its chunk, or all the way."""

    window: int | None
    chunk: int | None

    def constants(self, c: Names) -> Iterator[Constant]:
        """What it is printed with."""
        if self.window is not None:
            yield Constant(c.WINDOW, literal(self.window), "positions a query sees, its own included")
        if self.chunk is not None:
            yield Constant(c.CHUNK, literal(self.chunk), "positions of a chunk; a query sees no other chunk")

    def visible(self, c: Names) -> str:
        """Which of the keys so far a query sees, as an expression."""
        if self.window is not None:
            return f"within_window(visible_BTS, {c.WINDOW})"
        return "visible_BTS" if self.chunk is None else f"within_chunk(visible_BTS, {c.CHUNK}, attention_mask)"

    def kept(self, c: Names) -> str:
        """How many positions a layer keeps for its queries, as an expression."""
        if self.window is not None:
            return c.WINDOW
        return ALL if self.chunk is None else c.CHUNK


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """The inputs of a model with these mixers by kind of layer."""

    kinds: tuple[str, ...]
    ropes: Sequence[RopeView]
    sights: Sequence[tuple[Variant[Sight], Names]]
    growths: Sequence[tuple[Variant[QueryScaleFields], Names]]
    """How queries grow with their position, where they do."""
    slopes: Sequence[tuple[Variant[float], Names]]
    """How fast the scores of the last head fall with distance, where they do."""
    heads: Mapping[str, tuple[str, int]]
    """The number of heads, and the constant that holds it, by the kinds whose scores fall with distance."""
    read: bool
    """Whether some mixer does more with its mask than hand it to torch's attention."""

    @classmethod
    def of(
        cls, mixing: Mapping[str, MixerPart], ropes: Sequence[RopeView], named: Mapping[str, Names], *, read: bool
    ) -> Self:
        """The inputs of mixers; `named` are the names of their constants."""
        attentions = {kind: part for kind, part in mixing.items() if isinstance(part, Attention)}
        falling = {kind: (part.heads, part.alibi.max_bias) for kind, part in attentions.items() if part.alibi}
        names: dict[int, str] = {}
        growths = ((kind, part.query_scale) for kind, part in attentions.items() if part.query_scale)
        return cls(
            kinds=tuple(mixing),
            ropes=ropes,
            sights=with_names(
                variants((kind, Sight(part.window, part.chunk)) for kind, part in mixing.items()), Sight.constants
            ),
            growths=with_names(variants(growths), _growth_constants),
            slopes=with_names(variants((kind, steep) for kind, (_, steep) in falling.items()), _slope_constants),
            read=read,
            heads={kind: (names.setdefault(heads, named[kind].HEADS), heads) for kind, (heads, _) in falling.items()},
        )

    @property
    def all(self) -> tuple[Input, ...]:
        """Every input that some layer has."""
        seen = {kind: v.value.visible(c) for v, c in self.sights for kind in v.kinds}
        table = {kind: rope.variable for rope in self.ropes for kind in rope.kinds}
        growth = {
            kind: f"{v.function_prefix}query_growth({_COUNTED[v.value.counts]})"
            for v, _ in self.growths
            for kind in v.kinds
        }
        alibi = {
            kind: self._as_cached(kind, f"alibi_bias({self.heads[kind][0]}, {c.ALIBI_MAX_BIAS}, visible_BTS)")
            for v, c in self.slopes
            for kind in v.kinds
        }
        found = (
            self._input("rotation", "Pair", table, "these layers see positions"),
            self._input("growth_B1T1", "Tensor", growth, "queries of these layers grow"),
            self._input("alibi_HTS", "Tensor", alibi, "these layers see distances"),
            self._input("visible_BTS", "Tensor | None" if self.unmasked else "Tensor", seen),
        )
        return tuple(one for one in found if any(one.values.values()))

    @property
    def kept(self) -> Mapping[str, str]:
        """How many positions layers of a kind keep for their queries, as expressions."""
        return {kind: v.value.kept(c) for v, c in self.sights for kind in v.kinds}

    def _as_cached(self, kind: str, columns: str) -> str:
        """What stands for columns of all places, where layers of a kind keep some of them."""
        kept = self.kept[kind]
        return columns if kept == ALL else f"as_remembered({columns}, {kept})"

    def _input(self, name: str, annotation: str, values: Mapping[str, str], reason: str = "") -> Input:
        return Input(name, annotation, {kind: values.get(kind) for kind in self.kinds}, reason)

    @property
    def constants(self) -> Iterator[Constant]:
        """What they are printed with, beside tables of cosines and sines."""
        yield from (each for sight, c in self.sights for each in sight.value.constants(c))
        yield from (each for growth, c in self.growths for each in _growth_constants(growth.value, c))
        yield from (each for slope, c in self.slopes for each in _slope_constants(slope.value, c))

    @property
    def uneven(self) -> bool:
        """Whether scores of some number of heads fall with distance that is no power of two."""
        return any(heads & (heads - 1) for _, heads in self.heads.values())

    @property
    def unmasked(self) -> bool:
        """Whether layers get no mask where queries see all that came before: none works anything out from it."""
        counted = any(growth.value.counts == "columns" for growth, _ in self.growths)
        return not (self.read or self.chunked or counted)

    @property
    def hides(self) -> str:
        """Whether some query of several, none of them padding, does not see all that came before, as an expression.

        Or whether torch would let it see other keys: it takes the first query to stand at the first key.
        """
        windows = [(sight.value.window, c.WINDOW) for sight, c in self.sights if sight.value.window is not None]
        return f"new > (1 if past else {min(windows)[1]})" if windows else "(past > 0 and new > 1)"

    @property
    def windowed(self) -> bool:
        """Whether some queries see a number of positions alone."""
        return any(sight.value.window is not None for sight, _ in self.sights)

    @property
    def chunked(self) -> bool:
        """Whether some queries see their chunk alone."""
        return any(sight.value.chunk is not None for sight, _ in self.sights)


def _growth_constants(growth: QueryScaleFields, c: Names) -> Iterator[Constant]:
    yield Constant(c.QUERY_GROWTH, literal(growth.strength))
    yield Constant(c.GROWTH_LENGTH, literal(growth.length), _LENGTHS[growth.form])


def _slope_constants(max_bias: float, c: Names) -> Iterator[Constant]:
    yield Constant(c.ALIBI_MAX_BIAS, literal(max_bias), "slopes go down to 2^-this")
