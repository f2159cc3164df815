"""Rotary positions of a generated module: its frequencies, tables and rotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as altered

from archc.codegen.constants import AttentionFactors, Rule, scaling_constants, with_names
from archc.codegen.naming import Names, Variant, fitted, variants
from archc.parts.position import Direction, Pairing, Rope
from archc.parts.scaling import Scaling


@dataclass(frozen=True, slots=True)
class Turn:
    """How a head is turned: which channels pair up, whether some do not turn, which way round, and how exactly."""

    pairing: Pairing
    partial: bool
    direction: Direction
    float32: bool

    @property
    def heads(self) -> str:
        """What is turned."""
        return "x_BHTC.float()" if self.float32 else "x_BHTC"

    @property
    def rounded(self) -> str:
        """What brings heads that have turned back to the type of the others."""
        return ".to(x_BHTC.dtype)" if self.float32 else ""

    @property
    def way(self) -> str:
        """The word for turning the other way round."""
        return " backward" if self.direction == "backward" else ""

    @property
    def turned(self) -> str:
        """Both channels of a pair (a, b), once they have turned."""
        first, second = ("-", "+") if self.direction == "forward" else ("+", "-")
        return f"(a * cos_B1TC {first} b * sin_B1TC, b * cos_B1TC {second} a * sin_B1TC)"


Given = tuple[str, str, str]
"""The base, the channels and the type of a table of cosines and sines, as expressions."""
_PARAMETERS = ("base: float", "channels: int", "dtype: torch.dtype")
_EXACT = "torch.float32"


@dataclass(frozen=True, slots=True)
class TableView:
    """A function that makes tables of cosines and sines by one rule, with the names of its constants.

    `given` is what each of its tables is made from: what is the same in all of them needs no parameter.
    """

    prefix: str
    names: Names
    rule: Scaling | None
    factors: AttentionFactors
    given: tuple[Given, ...]

    @property
    def function(self) -> str:
        """The function's name."""
        return f"{self.prefix}rotation_table"

    @property
    def base(self) -> str:
        """The unscaled base."""
        return self._read(0)

    @property
    def channels(self) -> str:
        """How many channels of a head turn."""
        return self._read(1)

    @property
    def exact(self) -> bool:
        """Whether all tables are in float32, whatever the type of the stream."""
        return {dtype for *_, dtype in self.given} == {_EXACT}

    @property
    def parameters(self) -> list[str]:
        """The function's parameters."""
        return ["position_ids: Tensor", *(_PARAMETERS[place] for place in self._open)]

    def arguments(self, given: Given) -> list[str]:
        """The arguments for one of its tables."""
        return ["position_ids", *(given[place] for place in self._open)]

    @property
    def length_matters(self) -> bool:
        """Whether its tables depend on the length of the input."""
        return self.factors[1] is not None or (self.rule is not None and self.rule.length_matters)

    @property
    def _open(self) -> list[int]:
        differing = [place for place in (0, 1) if len({given[place] for given in self.given}) > 1]
        return differing if self.exact else [*differing, 2]

    def _read(self, place: int) -> str:
        return _PARAMETERS[place].split(":")[0] if place in self._open else self.given[0][place]


@dataclass(frozen=True, slots=True)
class RopeView:
    """One table of cosines and sines: the variable that holds it, and the call that makes it."""

    variable: str
    kinds: tuple[str, ...]
    table: TableView
    given: Given

    @property
    def assignment(self) -> str:
        """The statement that makes the table, in a method."""
        return fitted(8, f"{self.variable} = {self.table.function}", self.table.arguments(self.given))


def turn_of(rope: Rope) -> Turn:
    """How a rope turns a head."""
    return Turn(rope.pairing, rope.rotary_dim < rope.head_dim, rope.direction, rope.float32 != "angles")


def turn_variants(ropes: Sequence[tuple[Variant[Rope], Names]]) -> list[Variant[Turn]]:
    """The rotations that a model needs; one that may leave channels as they are serves those that leave none."""
    turns = {rope.kinds[0]: turn_of(rope.value) for rope, _ in ropes}
    partial = {turn for turn in turns.values() if turn.partial}
    return variants(
        (kind, some if (some := replace(turn, partial=True)) in partial else turn) for kind, turn in turns.items()
    )


def without_table(rope: Rope | None) -> Rope | None:
    """A rope without what tables of cosines and sines say of it: classes are given these from outside."""
    return rope and altered(rope, base=2.0, scaling=None, attention_factor=1.0)


def function_of(rope: Rope | None, turns: Sequence[Variant[Turn]]) -> str | None:
    """The function that turns heads by a rope."""
    if rope is None:
        return None
    turn = turn_of(rope)
    fitting = (turn, replace(turn, partial=True))
    return next(f"{each.function_prefix}rotate" for each in turns if each.value in fitting)


def scaling_variants(ropes: Sequence[tuple[Variant[Rope], Names]]) -> list[tuple[Variant[Rule], Names]]:
    """The rules by which frequencies are made, whatever their base."""
    return with_names(
        variants((kind, _rule(rope.value)) for rope, _ in ropes for kind in rope.kinds), scaling_constants
    )


def _rule(rope: Rope) -> Rule:
    return rope.scaling, (rope.attention_factor, rope.long_attention_factor)


def rope_views(ropes: Sequence[tuple[Variant[Rope], Names]], head_dims: Mapping[int, str]) -> list[RopeView]:
    """The tables that a model needs; `head_dims` are the names of the constants for sizes of heads."""
    given = {kind: _given(rope.value, names, head_dims) for rope, names in ropes for kind in rope.kinds}
    tables: dict[str, TableView] = {}
    for rule, names in scaling_variants(ropes):
        all_given = tuple(dict.fromkeys(given[kind] for kind in rule.kinds))
        table = TableView(rule.function_prefix, names, *rule.value, all_given)
        tables |= dict.fromkeys(rule.kinds, table)
    return [
        RopeView(f"{rope.function_prefix}rotation", rope.kinds, tables[rope.kinds[0]], given[rope.kinds[0]])
        for rope, _ in ropes
    ]


def _given(rope: Rope, c: Names, head_dims: Mapping[int, str]) -> Given:
    channels = c.ROTARY_DIM if rope.rotary_dim < rope.head_dim else head_dims[rope.head_dim]
    return c.ROPE_BASE, channels, _EXACT if rope.float32 == "all" else "x_BTD.dtype"
