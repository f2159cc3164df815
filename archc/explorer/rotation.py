"""Rotary positions for the page: the speed of every pair, by every kind of scaling, as formulas of doubles."""

from __future__ import annotations

from typing import Any, Final, cast

from archc.formulas.javascript import Book
from archc.formulas.unknown import Tree, follow, unknown
from archc.parts.position import Rope
from archc.parts.scaling import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongropeScaling,
    NtkAlphaScaling,
    ProportionalScaling,
    Scaling,
    ScalingFields,
    YarnScaling,
)

KINDS: Final[tuple[tuple[str, str, ScalingFields | None], ...]] = (
    ("none", "none", None),
    ("linear", "linear (position interpolation)", LinearScaling(factor=4)),
    ("dynamic", "dynamic NTK", DynamicScaling(factor=4, original_context=4096)),
    ("ntk_alpha", "NTK, fixed alpha", NtkAlphaScaling(alpha=8)),
    (
        "llama3",
        "Llama 3 bands",
        Llama3Scaling(factor=8, original_context=8192, low_freq_factor=1, high_freq_factor=4),
    ),
    ("yarn", "YaRN", YarnScaling(factor=4, original_context=4096)),
    ("yarn_open", "YaRN, ramp between pairs", YarnScaling(factor=4, original_context=4096, truncate=False)),
    ("proportional", "proportional", ProportionalScaling(share=0.5)),
    ("longrope", "LongRoPE", LongropeScaling(original_context=4096, short_factors=(1.0,), long_factors=(1.0,))),
)
"""Every kind of scaling, with the numbers that a playground starts from."""
_TABLES: Final = ("short_factors", "long_factors")


class _Entry(tuple[float, ...]):
    """A table with one entry per pair, of which that of the pair in question is asked."""

    __slots__ = ()

    def __getitem__(self, pair: Any) -> Any:
        return super().__getitem__(0)


def rotation_data(book: Book) -> list[dict[str, Any]]:
    """Every kind of scaling: its numbers, and the nodes of a pair's speed and of what it keeps."""
    return [_kind(kind, label, scaling, book) for kind, label, scaling in KINDS]


def rotation_of(rope: Rope, book: Book) -> dict[str, Any]:
    """The rotary positions of a mixer."""
    scaling = rope.scaling
    stated = {name: getattr(scaling, name) for name in scaling.__struct_fields__} if scaling else {}
    return {
        "base": rope.base,
        "pairing": rope.pairing,
        "head_dim": book.count(rope.head_dim),
        "rotary_dim": book.count(rope.rotary_dim),
        "scaling": {**stated, "kind": _name(scaling), "name": scaling.kind} if scaling else None,
    }


def _name(scaling: ScalingFields) -> str:
    """The entry of KINDS whose formulas a scaling has."""
    return "yarn_open" if isinstance(scaling, YarnScaling) and not scaling.truncate else scaling.kind


def _kind(kind: str, label: str, scaling: ScalingFields | None, book: Book) -> dict[str, Any]:
    names = scaling.__struct_fields__ if scaling else ()
    values = {name: getattr(scaling, name) for name in names if name not in _TABLES}
    numbers = {
        name: value for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }
    entries = {name: _Entry((_real(name),)) for name in names if name in _TABLES}
    unknowns: Any = {name: _real(name) for name in numbers} | entries
    asked = type(scaling)(**{**values, **unknowns}) if scaling else None
    rope = Rope(
        base=_real("base"),
        pairing="half",
        rotary_dim=cast(int, unknown("rotary_dim")),
        head_dim=cast(int, unknown("head_dim")),
        direction="forward",
        float32="angles",
        scaling=cast(Scaling | None, asked),
        attention_factor=1.0,
    )
    pair, length = cast(int, _real("pair")), cast(int, _real("length"))
    return {
        "kind": kind,
        "label": label,
        "numbers": numbers,
        "tables": [name for name in names if name in _TABLES],
        "speed": _node(follow(lambda: rope.frequency(pair, length)), book),
        "kept": _node(follow(lambda: rope.keeps(pair)), book),
    }


def _node(tree: Tree[Any], book: Book) -> int:
    return book.tree(tree, book.double, doubles=True)


def _real(name: str) -> Any:
    return unknown(name, whole=False)
