"""Switches, sliders and the address: by keyboard, by name, and back again."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from playwright.sync_api import Locator, Page

from tests.explorer.browser import Watched

Opener = Callable[..., Watched]
TOTAL = "#headline [data-key='params.total']"
FOCUSABLE = "button, select, input, summary, a[href], pre, [tabindex='0']"
# Radio buttons of a group are one stop; what is hidden or disabled is none.
STOPS = """(focusable) => {
  const usable = (one) => !one.disabled && one.checkVisibility() && one.tabIndex >= 0;
  const shown = [...document.querySelectorAll(focusable)].filter(usable);
  return shown.filter((one) => one.type !== "radio" || one.checked).length;
}"""
HERE = """() => { const one = document.activeElement;
  return `${one.tagName}#${one.id}.${one.name || ""}|${(one.textContent || "").slice(0, 30)}`; }"""
LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4")].filter((one) => one.checkVisibility())
  .map((one) => Number(one.tagName[1]))"""
NAMELESS = """() => [...document.querySelectorAll("button, select, input, textarea, summary")].filter((one) => {
  const labels = [...(one.labels || [])].map((label) => label.textContent).join("");
  return !(labels || one.getAttribute("aria-label") || (one.matches("button, summary") ? one.textContent : "")).trim();
}).map((one) => one.outerHTML)"""
GARBAGE = [
    "#spec=__proto__&beside=constructor",
    "#layers=-1&hidden_size=1e9&heads=0x10&kv_heads=99999999999999999999&context=NaN&batch=",
    "#switch.norm=__proto__&switch.positions=%3Cscript%3E&dtype=int3&kv_dtype=toString",
    "#rope.query=1e308&rope.key=-5&rope.pair=99999999&rope.length=7&rope.scaling=hasOwnProperty&rope.factor=Infinity",
    "#%E0%A4%A&&&===&spec",
    "#" + "layers=13x&" * 5000,
    "#main",
]


def exact(page: Page, selector: str = TOTAL) -> int:
    return int(page.locator(selector).get_attribute("data-value") or "")


def slider(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name, exact=True)


def test_tab_reaches_everything_and_leaves(open_page: Opener) -> None:
    page = open_page("#layers=13").rested()
    stops = page.evaluate(STOPS, FOCUSABLE)
    seen = []
    for _ in range(stops + 5):
        page.keyboard.press("Tab")
        here = page.evaluate(HERE)
        if here.startswith("BODY"):
            break
        seen.append(here)
    assert len(seen) >= stops
    assert page.evaluate(HERE).startswith("BODY")
    assert seen[0].endswith("Skip to the figures")
    for control in (
        "SELECT#spec",
        "SELECT#second",
        "INPUT#slider-layers",
        "SELECT#dtype",
        "INPUT#rope-key",
        "BUTTON#copy-spec",
    ):
        assert any(stop.startswith(control) for stop in seen), control


def test_a_trap_would_be_seen(open_page: Opener) -> None:
    page = open_page().page
    page.evaluate("() => document.querySelector('#spec').addEventListener('blur', (event) => event.target.focus())")
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(HERE))
    assert not any(stop.startswith("INPUT#slider-layers") for stop in seen)


def test_skip_link_and_sections(open_page: Opener) -> None:
    page = open_page("#layers=13").page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("link", name="Memory").press("Enter")
    assert page.evaluate("document.activeElement.id") == "memory"
    assert "layers=13" in page.url


def test_everything_has_a_name(open_page: Opener) -> None:
    page = open_page("#spec=llama3-8b&layers=31&rope.scaling=llama3").rested()
    assert page.evaluate(NAMELESS) == []
    tree = page.locator("body").aria_snapshot()
    assert not re.search(r"- (slider|spinbutton|combobox|radio|button|img|table|region)(:| \[|$)", tree, re.MULTILINE)
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert f"- {landmark}" in tree
    page.evaluate("() => document.querySelector('label[for=spec]').remove()")
    assert len(page.evaluate(NAMELESS)) == 1


def test_one_heading_leads_to_the_next(open_page: Opener) -> None:
    levels = open_page("#spec=gemma3-1b").page.evaluate(LEVELS)
    assert levels[0] == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))


def test_pictures_say_what_they_show(open_page: Opener) -> None:
    page = open_page("#spec=gemma3-1b").rested()
    pictures = page.locator("svg[role=img]")
    assert pictures.count() >= 6
    for at in range(pictures.count()):
        for part in ("title", "desc"):
            assert len(pictures.nth(at).locator(f"> {part}").text_content() or "") > 10


def test_slider_by_keyboard_and_by_number(open_page: Opener) -> None:
    one = open_page()
    page, before = one.page, exact(one.page)
    slider(page, "Layers").focus()
    page.keyboard.press("ArrowRight")
    one.drawn()
    grown = exact(page)
    assert grown > before
    typed = page.get_by_role("spinbutton", name="Layers, typed")
    assert typed.input_value() == "13"
    typed.fill("12")
    typed.press("Enter")
    one.drawn()
    assert exact(page) == before
    typed.fill("14")
    typed.press("Tab")
    one.drawn()
    assert exact(page) - grown == grown - before  # layers that are alike add the same each


def test_what_cannot_be_typed_becomes_what_can(open_page: Opener) -> None:
    one = open_page()
    page = one.page
    typed = page.get_by_role("spinbutton", name="Key/value heads, typed")
    typed.fill("5")  # of 12 heads, 4 or 6 can be shared evenly
    typed.press("Enter")
    one.drawn()
    assert typed.input_value() in {"4", "6"}
    assert "nearest" in (page.locator("#said").text_content() or "")
    typed = page.get_by_role("spinbutton", name="Layers, typed")
    for text in ("-3", "0", "", "1e99"):
        typed.fill(text)
        typed.press("Enter")
        one.drawn()
        assert int(typed.input_value()) >= 1


def test_switch_and_way_back(open_page: Opener) -> None:
    one = open_page()
    page, before = one.page, exact(one.page)
    page.get_by_role("radio", name="RMSNorm").focus()
    page.get_by_role("group", name="Norm", exact=True).get_by_role("radio", name="LayerNorm").focus()
    page.keyboard.press("ArrowRight")
    one.drawn()
    assert page.get_by_role("radio", name="RMSNorm").is_checked()
    slider(page, "Layers").press("ArrowRight")
    one.drawn()
    assert page.locator("#changes li").count() == 2
    page.get_by_role("button", name=re.compile("Layers: 13, declared 12")).click()
    one.drawn()
    assert page.locator("#changes li").count() == 1
    page.get_by_role("button", name="Back to gpt2 as declared").click()
    one.drawn()
    assert page.get_by_role("radio", name="LayerNorm").is_checked()
    assert exact(page) == before


def test_slider_has_its_own_way_back(open_page: Opener) -> None:
    one = open_page("#layers=13")
    one.page.get_by_role("button", name="Layers: back to 12, as declared").click()
    one.drawn()
    assert slider(one.page, "Layers").input_value() == "12"
    assert one.page.evaluate("document.activeElement.id") == "slider-layers"


def test_second_model_beside(open_page: Opener) -> None:
    one = open_page()
    page = one.page
    page.get_by_label("Beside it").select_option("=")
    slider(page, "Layers").press("ArrowRight")
    one.drawn()
    assert exact(page, f"{TOTAL}[data-model='1']") > exact(page, f"{TOTAL}[data-model='2']")
    page.get_by_label("Beside it").select_option("llama3-8b")
    one.drawn()
    assert exact(page, f"{TOTAL}[data-model='2']") == 8_030_261_248  # the model card's safetensors
    page.get_by_label("Beside it").select_option("")
    one.drawn()
    assert page.locator("[data-model='2']").count() == 0


def test_changes_are_told_briefly(open_page: Opener) -> None:
    one = open_page()
    one.page.wait_for_timeout(1000)
    slider(one.page, "Layers").press("ArrowRight")
    one.page.wait_for_timeout(1200)
    said = one.page.locator("#said").text_content() or ""
    assert "Parameters" in said
    assert "Usable context" not in said  # it has not changed
    assert len(said) < 300


def test_a_broken_design_has_no_figures(open_page: Opener) -> None:
    one = open_page("#spec=llama3-8b")
    page = one.page
    typed = page.get_by_role("spinbutton", name="Channels of a head, typed")
    typed.fill("127")  # rotary positions turn pairs
    typed.press("Enter")
    one.drawn()
    assert page.locator("[data-key]").count() == 0
    assert page.locator("#findings li.error").count() >= 1
    typed.fill("64")
    typed.press("Enter")
    one.drawn()
    assert page.locator("[data-key]").count() > 30
    assert page.locator("#findings li.error").count() == 0


def test_shared_heads_come_back(open_page: Opener) -> None:
    """Of 8 shared heads 20 query heads leave the nearest that divides them; with 32 again there are 8 again."""
    one = open_page("#spec=llama3-8b")
    typed = one.page.get_by_role("spinbutton", name="Query heads, typed")
    shared = one.page.get_by_role("spinbutton", name="Key/value heads, typed")
    for heads, expected in (("20", {"10", "5"}), ("32", {"8"})):
        typed.fill(heads)
        typed.press("Enter")
        one.drawn()
        assert shared.input_value() in expected


def test_address_holds_the_view(open_page: Opener) -> None:
    one = open_page()
    page = one.page
    page.get_by_label("Start from").select_option("llama3-8b")
    one.drawn()
    for name in ("Layers", "Context"):
        slider(page, name).press("ArrowLeft")
    page.get_by_label("Cache in").select_option("float8")
    page.get_by_label("Beside it").select_option("gpt-j-6b")
    slider(page, "Key's position").press("ArrowLeft")
    page.get_by_label("Scaling").select_option("llama3")
    one.rested()
    figures = page.locator("main").inner_text()
    again = open_page(page.url[page.url.index("#") :])
    assert again.rested().locator("main").inner_text() == figures
    page.reload()
    assert one.rested().locator("main").inner_text() == figures


def test_another_address_is_followed(open_page: Opener) -> None:
    one = open_page("#layers=13")
    one.page.evaluate("location.hash = '#layers=14'")
    one.page.wait_for_timeout(100)
    assert slider(one.drawn(), "Layers").input_value() == "14"


def test_garbage_in_the_address_is_harmless(open_page: Opener) -> None:
    one = open_page()
    for fragment in GARBAGE:
        one.go(fragment)
        assert one.rested().get_by_label("Start from").input_value() == "gpt2"
        assert exact(one.page) == 124439808
    one.go("#layers=13&spec=nobody&context=512&dtype=int3")  # and what is none of it, counts
    assert slider(one.page, "Layers").input_value() == "13"
    assert one.page.get_by_label("Weights in").input_value() == "float32"


def test_copy_buttons(open_page: Opener) -> None:
    one = open_page("", permissions=["clipboard-read", "clipboard-write"])
    page = one.page
    for button, place in (
        ("Copy the spec", "#spec-source"),
        ("Copy the command", "#command"),
        ("Copy the report command", "#report-command"),
    ):
        text = page.locator(place).text_content()
        page.get_by_role("button", name=button).click()
        page.wait_for_timeout(50)
        assert page.evaluate("navigator.clipboard.readText()") == text
        assert "copied" in (page.locator("#said").text_content() or "")
    assert (page.locator("#command").text_content() or "").startswith("archc generate ")
