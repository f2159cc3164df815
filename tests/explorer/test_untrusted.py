"""A spec may say what it likes: on the page it is text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archc.explorer.data import page_data
from archc.explorer.page import page
from tests.explorer.browser import Watched

pytestmark = pytest.mark.usefixtures("few_shipped")

Opener = Callable[..., Watched]
SCRIPT = "</script><script>window.taken=1</script><img src=x onerror=window.taken=1>"
SPEC = f"""\
archc: 1  # {SCRIPT}
name: hostile
vocab_size: 100
hidden_size: 64
context: 128
dtype: bfloat16
embedding: {{tied: true}}
norm: {{kind: rmsnorm, eps: 1.0e-5}}
position: {{kind: rope, base: 10000, pairing: half}}
attention: {{heads: 4, kv_heads: 2, head_dim: 16}}
ffn: {{kind: gated, activation: silu, width: 96}}
layers: 3
published:
  params.total: {{value: 1, source: "{SCRIPT} @SCRIPT@"}}
"""


def test_strings_of_a_spec_stay_text(open_html: Opener, tmp_path: Path) -> None:
    spec = tmp_path / "hostile.yaml"
    spec.write_text(SPEC)
    one = open_html(page(page_data([str(spec)])))
    untouched(one)
    assert one.page.get_by_label("Start from").input_value() == str(spec)


def test_strings_of_the_data_stay_text(open_html: Opener) -> None:
    """The language lets no such name through; should it one day, the page is a wall of its own."""
    text = json.dumps(page_data(()))
    assert '"gpt2"' in text
    one = open_html(page(json.loads(text.replace('"gpt2"', json.dumps(SCRIPT)))))
    untouched(one)
    assert one.page.get_by_label("Start from").input_value() == SCRIPT


def untouched(one: Watched) -> None:
    assert one.rested().evaluate("window.taken") is None
    assert one.page.locator("img").count() == 0
    assert one.page.locator("script").count() == 2


def test_as_markup_they_would_run(open_html: Opener, tmp_path: Path) -> None:
    """Without the policy and the escaping, the same strings take the page over."""
    one = open_html(f"<!doctype html><p><script type=application/json>{SCRIPT}</script>")
    one.page.wait_for_timeout(200)
    assert one.page.evaluate("window.taken") == 1
    one.said.clear()
    one.asked.clear()
