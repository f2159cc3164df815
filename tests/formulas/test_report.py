"""Formulas of the report: they say what the report says, for the spec's numbers and for others."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.architecture.build import build
from archc.formulas.report import Formulas, report_formulas
from archc.formulas.text import formula
from archc.spec.load import load, load_text, shipped_names
from tests.cli.runner import archc

TYPES: dict[str, Any] = {"dtype": "bfloat16", "kv_dtype": "int4", "state_dtype": "float32"}
DENSE = """\
archc: 1
name: dense
vocab_size: 1000
hidden_size: {width}
context: {context}
dtype: float32
embedding: {{tied: false}}
norm: {{kind: rmsnorm, eps: 1e-5}}
position: {{kind: rope, base: 10000}}
attention: {{heads: 6, kv_heads: 2, head_dim: 10, window: 64}}
ffn: {{kind: gated, activation: silu, width: 300}}
layers: {layers}
"""


def evaluated(found: Formulas, **other: int) -> dict[str, Any]:
    """The figures for the numbers of the formulas, or other ones, by letter."""
    numbers = {symbol.symbol: other.get(symbol.letter, symbol.value) for symbol in found.symbols}
    return {key: expression.subs(numbers) for key, expression in found.figures.items()}


@pytest.mark.parametrize("name", shipped_names())
def test_formulas_come_to_the_figures_of_the_report(name: str) -> None:
    loaded = load(name)
    report: Any = build_report(build(loaded.spec), batch=3, **TYPES)
    for key, number in evaluated(report_formulas(loaded, batch=3, **TYPES)).items():
        section, figure = key.split(".")
        assert float(number) == pytest.approx(report[section][figure], rel=1e-12, abs=0), key
        assert number == report[section][figure] or isinstance(report[section][figure], float), key


def test_formulas_hold_for_other_numbers() -> None:
    found = report_formulas(load_text(DENSE.format(width=48, context=100, layers=3)), batch=1, **TYPES)
    other = evaluated(found, d=80, C=1000, L=7)
    text = DENSE.format(width=80, context=1000, layers=7)
    report: Any = build_report(compile_text(text).architecture, **TYPES)
    assert {key: float(n) for key, n in other.items()} == {
        key: pytest.approx(report[key.split(".")[0]][key.split(".")[1]], rel=1e-12) for key in other
    }
    assert other["params.total"] != evaluated(found)["params.total"]


def test_conditions_say_where_they_end() -> None:
    """Behind a window of 64 the cache grows no more; within it, it does."""
    found = report_formulas(load_text(DENSE.format(width=48, context=100, layers=3)), batch=1, **TYPES)
    (context,) = (symbol.symbol for symbol in found.symbols if symbol.letter == "C")
    assert all(condition.subs({context: 65}) for condition in found.conditions)
    assert not all(condition.subs({context: 60}) for condition in found.conditions)
    assert evaluated(found, C=60)["kv_cache.bytes_at_context"] != 60 * evaluated(found)["kv_cache.bytes_per_token"]


def test_another_context_has_a_letter_of_its_own() -> None:
    """GPT-2's table has a row for each of 1,024 positions, however many the cache holds."""
    loaded = load("gpt2")
    found = report_formulas(loaded, batch=2, context=100, **TYPES)
    report: Any = build_report(build(loaded.spec), batch=2, context=100, **TYPES)
    figures = evaluated(found)
    assert figures["kv_cache.bytes_at_context"] == report["kv_cache"]["bytes_at_context"]
    assert figures["params.position"] == 1024 * 768
    assert figures["flops.forward_per_token"] == report["flops"]["forward_per_token"]


def test_the_command() -> None:
    printed = archc("report", "llama3-8b", "--formula").out
    assert "params.total = L·d·(2·a·g + 2·a·h + 3·f + 2) + d·(2·V + 1)\n    = 8,030,261,248\n" in printed
    document = archc("report", "gemma3-1b", "--formula", "--json").json
    formulas = document["formulas"]
    names = {letter: sympy.Symbol(letter, integer=True, positive=True) for letter in formulas["symbols"]}
    numbers = {names[letter]: one["value"] for letter, one in formulas["symbols"].items()}
    total = sympy.sympify(formulas["expressions"]["params.total"], locals=names)
    assert total.subs(numbers) == document["params"]["total"]
    assert formulas["hold_while"]


def test_by_hand() -> None:
    """Llama: V·d for either end, d for the last norm, and in a layer two norms, q and o, k and v, three matrices."""
    found = report_formulas(load("llama3-8b"), batch=1, **TYPES)
    names = {symbol.letter: symbol.symbol for symbol in found.symbols}
    V, L, d, h, g, a, f = (names[letter] for letter in "VLdhgaf")
    by_hand = 2 * V * d + d + L * (2 * d + 2 * d * h * a + 2 * d * g * a + 3 * d * f)
    assert sympy.expand(found.figures["params.total"] - by_hand) == 0
    assert formula(found.figures["params.total"]) == "L·d·(2·a·g + 2·a·h + 3·f + 2) + d·(2·V + 1)"
    assert found.figures["kv_cache.elements_per_token"] == 2 * L * g * a


def test_what_no_figure_hangs_on_is_no_condition() -> None:
    """LongRoPE has its amplitude from the context, and no size has anything from that amplitude."""
    table = [1.0] * 5
    scaling = f"{{kind: longrope, original_context: 64, short_factors: {table}, long_factors: {table}}}"
    text = DENSE.format(width=48, context=100, layers=3).replace("base: 10000}", f"base: 10000, scaling: {scaling}}}")
    plain = report_formulas(load_text(DENSE.format(width=48, context=100, layers=3)), batch=1, **TYPES)
    assert report_formulas(load_text(text), batch=1, **TYPES).conditions == plain.conditions
