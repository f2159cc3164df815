"""The playground: positions that are dragged or typed, and scores that only their distance moves."""

from __future__ import annotations

import math
from collections.abc import Callable

from playwright.sync_api import Page

from tests.explorer.browser import Watched

Opener = Callable[..., Watched]
ROPE = "#spec=llama3-8b"


def number(page: Page, place: str) -> float:
    return float((page.locator(place).text_content() or "").replace(",", ""))


def scores(page: Page) -> tuple[float, float]:
    return number(page, "#rope-pair-score"), number(page, "#rope-head-score")


def type_into(one: Watched, name: str, value: int) -> None:
    field = one.page.get_by_role("spinbutton", name=f"{name}, typed")
    field.fill(str(value))
    field.press("Enter")
    one.drawn()


def test_key_by_keyboard(open_page: Opener) -> None:
    one = open_page(ROPE)
    before = scores(one.page)
    key = one.page.get_by_role("slider", name="Key's position")
    key.focus()
    one.page.keyboard.press("ArrowRight")
    one.drawn()
    after = scores(one.page)
    assert key.input_value() == "49"
    assert after[0] != before[0]
    assert after[1] != before[1]


def test_scores_by_hand(open_page: Opener) -> None:
    """Llama 3's rope: 64 pairs, pair i turning 500000^(-i/64) radians a position."""
    one = open_page(ROPE)
    type_into(one, "Pair, from the fastest", 8)
    type_into(one, "Query's position", 100)
    type_into(one, "Key's position", 91)
    speeds = [500_000 ** (-i / 64) for i in range(64)]
    expected = math.cos(9 * speeds[8]), sum(math.cos(9 * speed) for speed in speeds) / 64
    assert scores(one.page) == tuple(float(f"{score:.4f}") for score in expected)
    assert number(one.page, "#rope-distance") == 9


def test_shifting_both_changes_nothing(open_page: Opener) -> None:
    one = open_page(ROPE)
    before, angle = scores(one.page), one.page.locator("#rope-angle").text_content()
    arrows = one.page.locator(".arrows > desc").text_content()
    shift = one.page.get_by_role("slider", name="Shift both: the key to")
    for press in ("ArrowRight", "PageUp", "PageUp"):
        shift.press(press)
    type_into(one, "Shift both: the key to", 1234)
    assert one.page.get_by_role("spinbutton", name="Query's position, typed").input_value() == "1250"
    assert scores(one.page) == before
    assert one.page.locator("#rope-angle").text_content() == angle
    assert one.page.locator(".arrows > desc").text_content() != arrows  # both have turned


def test_moving_one_alone_does(open_page: Opener) -> None:
    one = open_page(ROPE)
    before = scores(one.page)
    type_into(one, "Query's position", 1250)
    assert scores(one.page) != before


def test_kinds_of_layers_that_turn_otherwise(open_page: Opener) -> None:
    """Gemma 3's windows turn at a base of 10,000; what sees all positions at 1,000,000, eight times slower."""
    page = open_page("#spec=gemma3-27b").page
    bases = page.locator(".rope-figures [data-key$='.base']")
    assert {bases.nth(at).get_attribute("data-key"): bases.nth(at).text_content() for at in range(bases.count())} == {
        "rope.base": "10,000",
        "rope.by_kind.local.base": "10,000",
        "rope.by_kind.global.base": "1,000,000",
    }
    assert "in local layers" in (page.locator("#rope").text_content() or "")
    still = open_page("#spec=smollm3-3b").page.locator("#rope").text_content() or ""
    assert "in rope layers" in still
    assert "Layers of the kind nope do not turn." in still
    alike = open_page(ROPE).page
    assert alike.locator("[data-key^='rope.by_kind']").count() == 0
    assert "layers; the table" not in (alike.locator("#rope").text_content() or "")


def test_key_by_pointer(open_page: Opener) -> None:
    one = open_page(ROPE)
    chart = one.page.locator(".slot.scores")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    one.page.mouse.move(box["x"] + 60, box["y"] + 60)
    one.page.mouse.down()
    one.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80, steps=4)
    one.page.mouse.up()
    one.drawn()
    middle = number(one.page, "#rope-distance")
    assert 115 < middle < 140  # of the 256 that are shown
    one.page.mouse.move(box["x"] + 60, box["y"] + 60)
    assert number(one.drawn(), "#rope-distance") == middle


def test_pairs_and_scalings(open_page: Opener) -> None:
    one = open_page(ROPE)
    page = one.page
    page.get_by_text("The speeds as a table").click()
    rows = page.locator("tr[data-pair]")
    assert rows.count() == 64
    rows.nth(20).click()
    one.drawn()
    assert page.get_by_role("spinbutton", name="Pair, from the fastest, typed").input_value() == "20"
    assert page.locator("tr[aria-current]").get_attribute("data-pair") == "20"
    page.get_by_label("Scaling").select_option("linear")
    one.drawn()
    factor = page.get_by_label("factor", exact=True)
    default = f"× {float(factor.input_value()):g}"
    assert {rows.nth(at).locator("td").nth(2).inner_text() for at in (0, 30, 63)} == {default}
    factor.fill("3")
    factor.press("Enter")
    one.drawn()
    assert rows.nth(63).locator("td").nth(2).inner_text() == "× 3"
    page.get_by_label("Scaling").select_option("none")
    one.drawn()
    assert rows.nth(0).locator("td").count() == 1


def test_a_model_without_rope_can_be_played_with(open_page: Opener) -> None:
    one = open_page()
    assert "no rotary positions" in (one.page.locator("#rope .hint").first.text_content() or "")
    assert scores(one.page)[1] < 1
