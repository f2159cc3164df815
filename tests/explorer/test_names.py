"""Specs that are allowed and unusual: what their layers are called, and sizes that hang on one another."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from archc.architecture import compile_text
from archc.explorer.data import page_data
from archc.explorer.page import page
from tests.explorer.browser import Watched
from tests.explorer.compared import held, move, read

pytestmark = pytest.mark.usefixtures("few_shipped")

Opener = Callable[..., Watched]
HEAD = """\
archc: 1
name: unusual
vocab_size: 100
hidden_size: 64
context: 128
dtype: bfloat16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-5}
attention: {heads: 4, kv_heads: 2, head_dim: 16}
ffn: {kind: gated, activation: silu, width: 96}
"""
ROPE = "position: {kind: rope, base: 10000}\n"
TWO_KINDS = """\
layers:
  count: 4
  pattern: 2*({0}, {1})
  kinds:
    "{0}": {{attention: {{window: 8}}}}
    "{1}": {{}}
"""
ONE_TO_EIGHT = list(range(1, 9))
CASES = {
    # Every object of JavaScript has something of that name.
    "javascript": HEAD + ROPE + TWO_KINDS.format("constructor", "other"),
    # Written without quotes, YAML takes these for something else than names.
    "yaml": HEAD + ROPE + TWO_KINDS.format("null", "true"),
    "yaml_letters": HEAD + ROPE + TWO_KINDS.format("on", "no"),
    # Training is as long as one kind of layer says, and the other's positions are held against that.
    "trained": HEAD
    + """\
position: {kind: rope, base: 10000, scaling: {kind: yarn, factor: 10, original_context: 24}}
layers:
  count: 4
  pattern: 2*(far, near)
  kinds: {far: {}, near: {position: {scaling: null}}}
""",
    "control": HEAD + ROPE + 'layers: 3\npublished: {params.total: {value: 99008, source: "a\\x7f\\u2028b\\ufeff"}}\n',
    # Unless stated, its amplitude follows from the context, which is not known when formulas are traced.
    "longrope": HEAD + f"position: {{kind: rope, base: 10000, scaling: {{kind: longrope, original_context: 64, "
    f"short_factors: {ONE_TO_EIGHT}, long_factors: {ONE_TO_EIGHT[::-1]}}}}}\nlayers: 3\n",
}


@pytest.mark.parametrize("case", CASES)
def test_holds(case: str, open_html: Opener, tmp_path: Path) -> None:
    spec = tmp_path / "unusual.yaml"
    spec.write_text(CASES[case], encoding="utf-8")
    one = open_html(page(page_data([str(spec)])))
    assert compile_text(read(one.page).spec).architecture == compile_text(CASES[case]).architecture
    chance = random.Random(case)
    for _ in range(4):
        assert held(read(one.rested()), tmp_path) == []
        move(one, chance)
