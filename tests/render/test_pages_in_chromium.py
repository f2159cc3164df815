"""Pages as a browser has them: nothing goes wrong, nothing is wider than the screen, both themes, the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from archc.render.colours import PAPER
from tests.render.test_pages import PAGES

WIDTHS = (320, 390, 768, 1280)


def wrong(browser: Browser, file: Path) -> list[str]:
    """Everything that a reader with a phone, a screen or a dark room, or a log, would notice."""
    page = browser.new_page()
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("request", lambda request: found.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    if page.evaluate("document.compatMode") != "CSS1Compat":
        found.append("read as a page of the nineties")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append(f"wider than {width} pixels")
    for theme, paper in (("light", PAPER.light), ("dark", PAPER.dark)):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        red, green, blue = (int(paper[start : start + 2], 16) for start in (1, 3, 5))
        if page.evaluate("getComputedStyle(document.body).backgroundColor") != f"rgb({red}, {green}, {blue})":
            found.append(f"not {theme}")
    page.close()
    return found


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_at_any_width_in_either_theme(browser: Browser, name: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    assert wrong(browser, file) == []


def test_what_is_wrong_would_be_noticed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    bad = '<script>1</script><img src="x.png"><p style="width: 500px; background: red">wide</p></main>'
    file.write_text(PAGES["passing"]().replace("</main>", bad).replace("--paper", "--other"), encoding="utf-8")
    found = wrong(browser, file)
    assert len([one for one in found if "Content Security Policy" in one]) >= 2, "the policy holds both back"
    assert {"wider than 320 pixels", "wider than 390 pixels", "not light", "not dark"} <= set(found)
    assert "wider than 768 pixels" not in found


def test_figures_behind_charts_can_be_reached_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES["failing"](), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            page.keyboard.press("Enter")
            reached.add(page.evaluate("document.activeElement.textContent.trim()"))
        if len(reached) == len(page.query_selector_all("summary")):
            break
    assert reached == {"The figures of every probe", "All 4 of them", "What --json prints"}
    assert page.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
    page.close()
