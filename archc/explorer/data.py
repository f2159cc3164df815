"""All that the page knows: its models with their tables, and the formulas that the tables name by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from archc import __version__
from archc.analysis import weights
from archc.analysis.alignment import continued
from archc.analysis.dtypes import BITS
from archc.analysis.flops import CONVENTION_OF_EXPERTS, CONVENTIONS
from archc.architecture.compile import Compiled, compile_spec
from archc.explorer.finish import figures
from archc.explorer.pieces import Found, Piece, around_piece, ends_piece, limits, part_piece
from archc.explorer.rotation import rotation_data, rotation_of
from archc.explorer.study import Study, Table
from archc.explorer.switches import DECLARED, SWITCHES, declared_label
from archc.explorer.words import norm_word, part_words
from archc.formulas.javascript import Book
from archc.formulas.sketch import sketched_layer
from archc.formulas.spec import NUMBERS, plain
from archc.formulas.unknown import Unknown
from archc.parts.base import FfnPart, MixerPart
from archc.parts.norm import NORM_NAMES
from archc.spec.load import shipped_names

DEEPEST: Final = 200
"""Layers up to which a model is drawn out, or three times as many as it has."""
FIRST: Final = "gpt2"
_SWITCHED: Final = ("norm", "position", "attention", "ffn", "embedding")
"""Of a spec, into which switches write."""
Choices = Mapping[str, str]


def page_data(targets: Sequence[str]) -> dict[str, Any]:
    """What the page is made of, ready for JSON: the specs of `targets`, and behind them all shipped ones.

    Raises SpecError and UsageError as `compile_spec` does, before the long part.
    """
    own = {name: compile_spec(name) for name in targets}
    shipped, fixed, traced = _traced(tuple(_shipped()))
    book = traced.copy()
    models = [shipped.get(name) or _model(name, compiled, book) for name, compiled in own.items()]
    models += [model for name, model in shipped.items() if name not in own]
    return {
        "version": __version__,
        "models": models,
        "switches": [{"id": s.id, "label": s.label, "options": s.options} for s in SWITCHES],
        "numbers": {name: list(path) for name, path in NUMBERS.items()},
        "bits": BITS,
        "conventions": {"flops": CONVENTIONS, "experts": CONVENTION_OF_EXPERTS, "weights": weights.CONVENTIONS},
        **fixed,
        **book.export(),
    }


@cache
def _traced(names: tuple[str, ...]) -> tuple[dict[str, dict[str, Any]], dict[str, Any], Book]:
    """What does not change while a page is served: models, what all models have, and the book of their formulas."""
    book = Book()
    fixed = {
        "figures": {key: book.count(formula) for key, formula in figures().items()},
        "rotation": rotation_data(book),
    }
    return {name: _model(name, compile_spec(name), book) for name in names}, fixed, book


def _shipped() -> list[str]:
    names = shipped_names()
    return [FIRST, *(name for name in names if name != FIRST)]


def _model(target: str, compiled: Compiled, book: Book) -> dict[str, Any]:
    study = Study(compiled.loaded)
    spec = study.base.spec
    declared = dict(plain(compiled.loaded))
    kinds = list(spec.kinds)
    pattern = continued(spec.pattern, max(3 * len(spec.pattern), DEEPEST)) if len(kinds) > 1 else ()
    return {
        "name": target,
        "spec": declared,
        "sections": {name: _section(study, name, book) for name in _SWITCHED}
        | {"layers": _table(study.table(study.axes("position"), lambda c: _kinds(study, c)), book)},
        "declared": study.choices,
        "labels": {switch: declared_label(study.plain, switch) for switch, o in study.choices.items() if o == DECLARED},
        "layers": len(spec.pattern),
        "fixed_layers": spec.header.passes is not None,
        "pattern": "".join(chr(ord("A") + kinds.index(kind)) for kind in pattern),
        "kinds": {kind: _kind(study, kind, book) for kind in kinds},
        "ends": _table(study.table(study.axes("norm", "position", "embedding"), lambda c: _ends(study, c, book)), book),
    }


def _section(study: Study, name: str, book: Book) -> dict[str, Any] | None:
    """A section for every setting of its switches, null where those do not go together."""
    if name not in study.plain:
        return None

    def written(choices: Choices) -> Any:
        loaded = study.section(name, choices)
        return loaded and plain(loaded)[name]

    return _table(study.table(study.axes(name), written), book)


def _kinds(study: Study, choices: Choices) -> Any:
    """The kinds of layer as the spec writes them."""
    loaded = study.section("position", choices)
    layers = loaded and plain(loaded)["layers"]
    return layers["kinds"] if isinstance(layers, dict) else None


def _kind(study: Study, kind: str, book: Book) -> dict[str, Any]:
    built = sketched_layer(kind, study.layer(kind, {}), study.header({}))
    fields = study.base.spec.kinds[kind].branches
    return {
        "parallel": built.parallel,
        "norms": _table(study.table(study.axes("norm"), lambda c: _norms(study, kind, c, book)), book),
        "branches": [
            {
                "on_sum": branch.norm_on_sum,
                "parts": [_part(study, kind, index, name, book) for name in fields[index].parts],
            }
            for index, branch in enumerate(built.branches)
        ],
    }


def _norms(study: Study, kind: str, choices: Choices, book: Book) -> dict[str, Any]:
    header, fields = study.header(choices), study.layer(kind, choices)
    layer = sketched_layer(kind, fields, header)
    return {
        "shared": norm_word(layer.shared_norm),
        "before": [norm_word(branch.pre_norm) for branch in layer.branches],
        "after": [norm_word(branch.post_norm) for branch in layer.branches],
        **_piece(around_piece(header, fields), book),
    }


def _part(study: Study, kind: str, index: int, name: str, book: Book) -> dict[str, Any]:
    sections = (name, "norm") if name == "ffn" else (name, "norm", "position")

    @cache
    def trained(positions: str | None) -> Any:
        """The length of training, which one kind of layer may say for all."""
        chosen = {} if positions is None else {"positions": positions}
        return limits(study.header(chosen), {one: study.layer(one, chosen) for one in study.base.spec.kinds})[1]

    def entry(choices: Choices) -> dict[str, Any]:
        header, fields = study.header(choices), study.layer(kind, choices)
        part = dict(sketched_layer(kind, fields, header).branches[index].parts)
        found = next(p for slot, p in part.items() if slot.partition("_")[0] == name)
        piece = _piece(part_piece(header, fields, index, name, trained(choices.get("positions"))), book)
        return {"kind": found.kind, "words": _words(found, book), **piece, **_shape(found, book)}

    return {"section": name, "table": _table(study.table(study.axes(*sections), entry), book)}


def _words(part: Any, book: Book) -> int:
    return book.tree(part_words(part), lambda lines: [book.text(line) for line in lines])


def _shape(part: Any, book: Book) -> dict[str, Any]:
    """What the report says of the most common part of its sort."""
    found: dict[str, Any] = {}
    if isinstance(part, MixerPart):
        if part.shape:
            found["heads"] = [book.count(n) for n in (part.shape.heads, part.shape.kv_heads, part.shape.head_dim)]
        if part.rope:
            found["rope"] = rotation_of(part.rope, book)
    if isinstance(part, FfnPart):
        found["ffn"] = {"width": book.count(part.width), "gated": part.gated, "activation": part.activation}
        if part.routed:
            routed = (part.routed.experts, part.routed.top_k, part.routed.params_per_expert)
            found["routed"] = [book.count(number) for number in routed]
    return found


def _ends(study: Study, choices: Choices, book: Book) -> dict[str, Any]:
    header = study.header(choices)
    kinds = {kind: study.layer(kind, choices) for kind in study.base.spec.kinds}
    hard, trained = limits(header, kinds)
    return {
        **_piece(ends_piece(header, kinds), book),
        "final_norm": NORM_NAMES[header.norm.kind] if header.final_norm else None,
        "hard_context": None if hard is None else book.count(hard),
        "table_of_context": isinstance(hard, Unknown),
        "trained_context": None if trained is None else book.count(trained),
    }


def _piece(piece: Piece, book: Book) -> dict[str, Any]:
    def finding(found: Found) -> dict[str, Any]:
        return {"code": found.code, "message": book.text(found.message), "mend": book.text(found.mend)}

    def findings(trees: Iterable[Any]) -> list[int]:
        nodes = (book.tree(tree, lambda some: [finding(one) for one in some]) for tree in trees)
        return [node for node in dict.fromkeys(nodes) if book.nodes[node] != {"leaf": []}]

    found: dict[str, Any] = {
        "sums": [_sums(tree, book) for tree in piece.sums],
        "checks": findings(piece.checks),
        "advice": findings(piece.advice),
        **({"conventions": piece.conventions} if piece.conventions else {}),
    }
    if piece.once:
        found["once"] = {"name": piece.once[0], "sums": [_sums(tree, book) for tree in piece.once[1]]}
    return found


def _sums(tree: Any, book: Book) -> int:
    return book.tree(tree, lambda items: [[name, book.count(value)] for name, value in items])


def _table(table: Table, book: Book) -> dict[str, Any]:
    return {"axes": list(table.axes), "values": [book.entry(value) for value in table.values]}
