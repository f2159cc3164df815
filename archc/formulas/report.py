"""The figures of a model as formulas: `params.total = V·d + …`.

The analysis runs on the model with symbols for its sizes. Where it compares two of them it goes the way that the
model's own numbers go, and the comparison is said: the formulas hold wherever it comes out the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import sympy
from msgspec import Struct
from msgspec.structs import replace

from archc.analysis.cache import cache_sums, layer_caches, stored_of
from archc.analysis.dtypes import BITS, stored_bytes
from archc.analysis.flops import forward_flops
from archc.analysis.params import block_shares, count_params
from archc.architecture.build import build_ends
from archc.formulas.sketch import DEPTH, Sketch, sketch_of, sketched_layer
from archc.formulas.spec import NUMBERS, plain, stated, unknown_header, unknown_part
from archc.formulas.unknown import Unknown, along, symbol, unknown
from archc.spec.language import LayerFields
from archc.spec.load import LoadedSpec

LETTERS: Final[Mapping[str, tuple[str, str]]] = {
    "vocab_size": ("V", "vocab_size"),
    "hidden_size": ("d", "hidden_size"),
    "layers": ("L", "layers"),
    "heads": ("h", "attention.heads"),
    "kv_heads": ("g", "attention.kv_heads"),
    "head_dim": ("a", "attention.head_dim"),
    "width": ("f", "ffn.width"),
    "experts": ("E", "ffn.experts"),
    "top_k": ("k", "ffn.top_k"),
    "context": ("C", "context"),
    "tokens": ("T", "--context"),
    "batch": ("B", "--batch"),
}
"""The letter for a number, and the field that says it."""

_ORDERED: Final = (sympy.StrictLessThan, sympy.LessThan, sympy.StrictGreaterThan, sympy.GreaterThan)


class Symbol(Struct, frozen=True):
    """A letter of the formulas."""

    letter: str
    field: str
    """The field of the spec, or `layers of KIND`."""
    value: int

    @property
    def symbol(self) -> sympy.Symbol:
        """The letter as it stands in expressions."""
        return symbol(self.letter)


class Formulas(Struct, frozen=True):
    """Figures by their keys in the report, over letters."""

    symbols: tuple[Symbol, ...]
    figures: Mapping[str, sympy.Expr]
    conditions: tuple[sympy.Basic, ...]
    """Under which they hold."""


def report_formulas(
    loaded: LoadedSpec,
    *,
    batch: int,
    dtype: str,
    kv_dtype: str,
    state_dtype: str,
    context: int | None = None,
) -> Formulas:
    """The formulas of a spec, for weights and caches in some types.

    The cache holds `batch` sequences of `context` tokens, by default as many as the spec says.
    """
    base = stated(loaded)
    numbers = _numbers(base) | {"batch": batch}
    if context is not None and context != base.spec.header.context:
        numbers |= {"tokens": context}
    kinds = list(base.spec.kinds)
    counted = {kind: "layers" if len(kinds) == 1 else f"layers of {kind}" for kind in kinds}
    numbers |= {name: base.spec.pattern.count(kind) for kind, name in counted.items()}
    bits = (BITS[dtype], BITS[kv_dtype], BITS[state_dtype])
    figures, conditions = along(numbers, lambda: dict(_figures(_sketch(base, counted), "tokens" in numbers, bits)))
    letters = _letters(numbers)
    renamed = {name: symbol(letter) for name, letter in letters.items()}
    table = {symbol(name): letter for name, letter in renamed.items()}
    shown = {key: _of(figure).xreplace(table) for key, figure in figures.items()}
    held = _sharpest([condition.xreplace(table) for condition in conditions])
    met = set().union(*(expression.free_symbols for expression in (*shown.values(), *held)))
    symbols = (
        Symbol(letters[name], LETTERS[name][1] if name in LETTERS else name, value) for name, value in numbers.items()
    )
    return Formulas(tuple(one for one in symbols if one.symbol in met), shown, held)


def _sharpest(conditions: list[sympy.Basic]) -> tuple[sympy.Basic, ...]:
    """Without the lower bounds of a letter that follow from a higher one."""
    least: dict[sympy.Basic, tuple[int, sympy.Basic]] = {}
    others = []
    for condition in conditions:
        bounded, bound = (condition.gts, condition.lts) if isinstance(condition, _ORDERED) else (None, None)
        if not (isinstance(bounded, sympy.Symbol) and isinstance(bound, sympy.Integer)):
            others.append(condition)
            continue
        lowest = int(bound) + (condition.rel_op in ("<", ">"))
        if bounded not in least or lowest > least[bounded][0]:
            least[bounded] = (lowest, condition)
    return (*(condition for _, condition in least.values()), *others)


def _figures(sketch: Sketch, other_context: bool, bits: tuple[int, int, int]) -> Iterator[tuple[str, Any]]:
    """The figures by their keys, for a cache of the spec's context or another one."""
    params = count_params(sketch)
    context = cast(int, unknown("tokens")) if other_context else sketch.context
    caches = cache_sums([(layer_caches(layer), count) for layer, count in sketch.distinct], context=context)
    weight_bits, cache_bits, state_bits = bits
    batch = cast(int, unknown("batch"))
    sections: dict[str, Mapping[str, Any]] = {
        "params": params,
        "block": block_shares(sketch),
        "kv_cache": stored_of(caches, batch=batch, bits=cache_bits, state_bits=state_bits),
        "weights": {"bytes": stored_bytes(params["total"], weight_bits)},
        "flops": forward_flops(sketch, context=context),
    }
    for section, found in sections.items():
        for key, value in found.items():
            if not isinstance(value, list) and f"{section}.{key}" != "flops.context":
                yield f"{section}.{key}", value


def _sketch(base: LoadedSpec, counted: Mapping[str, str]) -> Sketch:
    header = replace(unknown_header(base.spec.header), vocab_size=unknown("vocab_size"))
    kinds = {
        kind: LayerFields(
            tuple(
                replace(
                    branch,
                    parts={name: unknown_part(base, kind, index, name) for name in branch.parts},
                )
                for index, branch in enumerate(fields.branches)
            )
        )
        for kind, fields in base.spec.kinds.items()
    }
    layers = tuple(sketched_layer(kind, fields, header) for kind, fields in kinds.items())
    ends = build_ends(header, kinds.values(), layers, DEPTH)
    return sketch_of(replace(ends, layers=layers), (cast(int, unknown(counted[kind])) for kind in kinds))


def _numbers(base: LoadedSpec) -> dict[str, int]:
    """The numbers of a spec that formulas have letters for."""
    root = plain(base)
    found = {"vocab_size": base.spec.header.vocab_size, "layers": len(base.spec.pattern)}
    for name, path in NUMBERS.items():
        section = root.get(path[0])
        value = section.get(path[1]) if len(path) > 1 and isinstance(section, Mapping) else section
        if isinstance(value, int):
            found[name] = value
    return {name: found[name] for name in LETTERS if name in found}


def _letters(numbers: Mapping[str, int]) -> dict[str, str]:
    """A letter for every number; layers of several kinds are told apart by an index."""
    kinds = [name for name in numbers if name not in LETTERS]
    return {name: LETTERS[name][0] for name in numbers if name in LETTERS} | {
        name: f"L{index}" for index, name in enumerate(kinds, 1)
    }


def _of(figure: Any) -> sympy.Expr:
    return figure.expression if isinstance(figure, Unknown) else sympy.nsimplify(figure)
