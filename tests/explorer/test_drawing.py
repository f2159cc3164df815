"""The drawing of a block, and the strip of the layers, say what the spec does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.explorer.browser import Watched

Opener = Callable[..., Watched]


def expect_heads(page: Page, queries: int, shared: int) -> None:
    block = page.locator("#block .drawing")
    expect(block.locator(".query")).to_have_count(queries)
    expect(block.locator(".shared")).to_have_count(shared)


def test_a_kind_of_layer_has_its_own_heads(open_page: Opener) -> None:
    """Gemma 4's layers have 16 query heads over 8 key/value heads, those without a window over 2."""
    one = open_page("#spec=gemma4-26b-a4b")
    expect_heads(one.page, 16, 8)
    one.page.locator("#block .kinds input[value=global]").check()
    expect_heads(one.page, 16, 2)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("gpt2", "12 layers, all alike"),
        ("gemma3-1b", "26 layers: 4 times (5 local, global), 2 local"),  # the config's sliding_window_pattern is 6
    ],
)
def test_the_strip_has_every_layer(open_page: Opener, spec: str, told: str) -> None:
    strip = open_page(f"#spec={spec}").page.locator("#block .strip")
    assert strip.locator("figcaption").inner_text() == told
    assert strip.locator("rect").count() == int(told.split(maxsplit=1)[0])


def test_switches_change_the_drawing(open_page: Opener) -> None:
    one = open_page("#spec=gpt2")
    titles = "#block .drawing .title"
    assert one.page.locator(titles).all_text_contents() == [
        *("Embedding", "LayerNorm", "Attention", "LayerNorm", "Feed-forward", "LayerNorm", "Head"),
    ]
    one = open_page("#spec=gpt2&switch.norm=rmsnorm&switch.experts=moe")
    assert one.page.locator(titles).all_text_contents() == [
        *("Embedding", "RMSNorm", "Attention", "RMSNorm", "Experts", "RMSNorm", "Head"),
    ]
