"""Pieces add up: what is summed for a choice is what the report says of the spec with that choice written into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sympy

from archc.analysis import build_report
from archc.analysis.params import params_of
from archc.architecture.build import build
from archc.explorer.pieces import Piece, around_piece, ends_piece, part_piece
from archc.explorer.study import Study
from archc.explorer.switches import AXES, SWITCHES, overrides
from archc.formulas.spec import NUMBERS, plain
from archc.formulas.unknown import Fork, Tree, Unknown
from archc.spec.load import load, overridden

SPECS = (
    "gpt2",
    "llama3-8b",
    "gemma3-1b",
    "mixtral-8x7b",
    "deepseek-v3",
    "zamba2-7b",
    "gemma4-e2b",
    "falcon-7b",
    "tiny",
)


def leaf(tree: Tree[Any], numbers: Mapping[sympy.Symbol, int]) -> Any:
    while isinstance(tree, Fork):
        tree = tree.then if tree.condition.subs(numbers) else tree.otherwise
    return tree.value


def summed(trees: Any, numbers: Mapping[sympy.Symbol, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for tree in trees:
        for name, number in leaf(tree, numbers):
            found[name] += number.expression.subs(numbers) if isinstance(number, Unknown) else number
    return found


def pieces(study: Study, choices: Mapping[str, str]) -> Iterator[tuple[str, Piece]]:
    header = study.header(choices)
    for kind in study.base.spec.kinds:
        layer = study.layer(kind, choices)
        yield kind, around_piece(header, layer)
        for index, branch in enumerate(layer.branches):
            for name in branch.parts:
                yield kind, part_piece(header, layer, index, name, None)


def totals(study: Study, choices: Mapping[str, str]) -> Counter[str]:
    """The sums over all pieces with the numbers that the sections of a choice state."""
    sections: dict[str, Any] = dict(study.plain)
    for name in AXES:
        loaded = study.section(name, {**study.choices, **choices})
        if name in sections and loaded:
            sections[name] = plain(loaded)[name]
    values = {name: _at(sections, path) for name, path in NUMBERS.items()} | {"layers": len(study.base.spec.pattern)}
    values["length"] = values["context"]
    numbers = {sympy.Symbol(n, integer=True, positive=True): v for n, v in values.items() if isinstance(v, int)}
    found: Counter[str] = Counter()
    once: dict[str, Counter[str]] = {}
    for kind, piece in pieces(study, choices):
        layers = study.base.spec.pattern.count(kind)
        for name, number in summed(piece.sums, numbers).items():
            found[name] += number * layers
        if piece.once:
            once[piece.once[0]] = summed(piece.once[1], numbers)
    for shared in once.values():
        found.update(shared)
    ends = ends_piece(study.header(choices), {k: study.layer(k, choices) for k in study.base.spec.kinds})
    for name, number in summed(ends.sums, numbers).items():
        found[name.removeprefix("ends.")] += number
    return found


def _at(sections: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = sections
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def single_choices(study: Study) -> Iterator[dict[str, str]]:
    yield {}
    for switch in SWITCHES:
        for option in study.options.get(switch.id, ())[1:]:
            if study.possible({switch.id: option}):
                yield {switch.id: option}


@pytest.mark.parametrize("name", SPECS)
def test_sums_are_those_of_the_report(name: str) -> None:
    study = Study(load(name))
    tried = 0
    for choices in single_choices(study):
        changes = [change for section in AXES for change in overrides(study.plain, section, choices)]
        spec = overridden(study.base, changes).spec if changes else study.base.spec
        report = build_report(build(spec))
        found = totals(study, choices)
        assert dict(params_of(found)) == dict(report["params"]), choices
        assert found["linear"] + found["behind_context"] == report["flops"]["decode_per_token"], choices
        held = sum(number for key, number in found.items() if key.startswith("cache.") and key.endswith(".held"))
        assert held == sum(kind["elements_at_context"] for kind in report["kv_cache"]["by_kind"].values()), choices
        tried += 1
    assert tried >= 5


def test_a_choice_that_the_sums_did_not_follow_would_be_seen() -> None:
    study = Study(load("gpt2"))
    tied = build_report(build(study.base.spec))["params"]
    assert dict(params_of(totals(study, {"ends": "untied"}))) != dict(tied)


def test_a_choice_that_other_fields_rule_out_is_not_possible() -> None:
    """A limit on the product of gate and up has no place where there is no gate."""
    study = Study(load("gpt-oss-20b"))
    assert not study.possible({"gate": "plain"})
    assert study.possible({"experts": "dense"})


def test_latent_attention_has_no_switches_of_plain_heads() -> None:
    assert set(Study(load("deepseek-v3")).options) == {"norm", "gate", "ends", "experts"}
