"""What a generated model works out once and hands to its layers: rotary tables, visible keys, what depends on distance.

An input is one value where all layers agree, else a table by the kind of layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from archc.codegen.constants import Constant
from archc.codegen.naming import Variant, fitted, literal, variants
from archc.codegen.rotation import RopeView
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
    def table(self) -> str:
        """The variable that holds its values by kind."""
        return f"{self.name.split('_')[0]}_by_kind"

    @property
    def argument(self) -> str:
        """What the loop over layers hands to a block."""
        return f"{self.table}[kind]" if self.by_kind else self.name

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

    @property
    def rows(self) -> Iterator[str]:
        """The lines of the table by kind."""
        for kind, value in self.values.items():
            yield _fitted_call(12, f"{literal(kind)}: ", value or "None", ",")


def _fitted_call(indent: int, head: str, value: str, tail: str = "") -> str:
    """A name, or the call of a function whose arguments are no calls."""
    function, _, arguments = value.partition("(")
    if not arguments:
        return f"{head}{value}{tail}"
    return fitted(indent, f"{head}{function}", arguments.removesuffix(")").split(", "), tail)


_SOME_GROWTH = QueryScaleFields(form="steps", strength=1.0, length=1)
_COUNTED = {"positions": "position_ids", "columns": "visible_BTS"}
_LENGTHS = {
    "steps": "positions after which queries grow by a step",
    "beyond": "positions beyond which queries grow",
    "power": "positions by which the growth of queries is measured",
}


def without_inputs(part: Attention) -> Attention:
    """An attention without which keys are visible, which table turns it, and what depends on distance: all inputs."""
    rope = part.rope
    if rope is not None:
        rope = replace(rope, base=2.0, scaling=None, attention_factor=1.0)
    return replace(
        part,
        window=None,
        window_rows="dropped",
        chunk=None,
        rope=rope,
        alibi=AlibiFields(kind="alibi", scaled=part.alibi.scaled) if part.alibi else None,
        query_scale=_SOME_GROWTH if part.query_scale else None,
    )


@dataclass(frozen=True, slots=True)
class Sight:
    """How far back a query sees: a number of positions, or to the first of its chunk, or all the way."""

    window: int | None
    chunk: int | None

    def constants(self, p: str) -> Iterator[Constant]:
        """What it is printed with."""
        if self.window is not None:
            yield Constant(f"{p}WINDOW", literal(self.window), "positions a query sees, its own included")
        if self.chunk is not None:
            yield Constant(f"{p}CHUNK", literal(self.chunk), "positions of a chunk; a query sees no other chunk")

    def visible(self, p: str) -> str:
        """Which of the keys so far a query sees, as an expression."""
        if self.window is not None:
            return f"visible_BTS.triu(past - {p}WINDOW + 1)"
        return "visible_BTS" if self.chunk is None else f"within_chunk(visible_BTS, {p}CHUNK, attention_mask)"


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """The inputs of a model with these mixers by kind of layer."""

    kinds: tuple[str, ...]
    ropes: Sequence[RopeView]
    sights: Sequence[Variant[Sight]]
    growths: Sequence[Variant[QueryScaleFields]]
    """How queries grow with their position, where they do."""
    slopes: Sequence[Variant[float]]
    """How fast the scores of the last head fall with distance, where they do."""
    heads: Mapping[str, tuple[str, int]]
    """The number of heads, and the constant that holds it, by the kinds whose scores fall with distance."""

    @classmethod
    def of(cls, mixing: Mapping[str, MixerPart], ropes: Sequence[RopeView], constants: Mapping[str, str]) -> Self:
        """The inputs of mixers; `constants` are the prefixes of their constants."""
        attentions = {kind: part for kind, part in mixing.items() if isinstance(part, Attention)}
        falling = {kind: (part.heads, part.alibi.max_bias) for kind, part in attentions.items() if part.alibi}
        names: dict[int, str] = {}
        return cls(
            kinds=tuple(mixing),
            ropes=ropes,
            sights=variants((kind, Sight(part.window, part.chunk)) for kind, part in mixing.items()),
            growths=variants((kind, part.query_scale) for kind, part in attentions.items() if part.query_scale),
            slopes=variants((kind, max_bias) for kind, (_, max_bias) in falling.items()),
            heads={
                kind: (names.setdefault(heads, f"{constants[kind]}HEADS"), heads)
                for kind, (heads, _) in falling.items()
            },
        )

    @property
    def all(self) -> tuple[Input, ...]:
        """Every input that some layer has."""
        seen = {kind: v.value.visible(v.constant_prefix) for v in self.sights for kind in v.kinds}
        table = {kind: rope.variable for rope in self.ropes for kind in rope.kinds}
        growth = {
            kind: f"{v.function_prefix}query_growth({_COUNTED[v.value.counts]})"
            for v in self.growths
            for kind in v.kinds
        }
        alibi = {
            kind: f"alibi_bias({self.heads[kind][0]}, {v.constant_prefix}ALIBI_MAX_BIAS, visible_BTS)"
            for v in self.slopes
            for kind in v.kinds
        }
        found = (
            self._input("rotation", "tuple[Tensor, Tensor]", table, "these layers see positions"),
            self._input("growth_B1T1", "Tensor", growth, "queries of these layers grow"),
            self._input("alibi_HTS", "Tensor", alibi, "these layers see distances"),
            self._input("visible_BTS", "Tensor", seen),
        )
        return tuple(one for one in found if any(one.values.values()))

    def _input(self, name: str, annotation: str, values: Mapping[str, str], reason: str = "") -> Input:
        return Input(name, annotation, {kind: values.get(kind) for kind in self.kinds}, reason)

    @property
    def constants(self) -> Iterator[Constant]:
        """What they are printed with, beside tables of cosines and sines."""
        for sight in self.sights:
            yield from sight.value.constants(sight.constant_prefix)
        for growth in self.growths:
            yield Constant(f"{growth.constant_prefix}QUERY_GROWTH", literal(growth.value.strength))
            yield Constant(
                f"{growth.constant_prefix}GROWTH_LENGTH", literal(growth.value.length), _LENGTHS[growth.value.form]
            )
        for slope in self.slopes:
            yield Constant(f"{slope.constant_prefix}ALIBI_MAX_BIAS", literal(slope.value), "slopes go down to 2^-this")

    @property
    def uneven(self) -> bool:
        """Whether scores of some number of heads fall with distance that is no power of two."""
        return any(heads & (heads - 1) for _, heads in self.heads.values())

    @property
    def chunked(self) -> bool:
        """Whether some queries see their chunk alone."""
        return any(sight.value.chunk is not None for sight in self.sights)
