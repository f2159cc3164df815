"""How the page opens, and what it looks like to a browser: quick, quiet, and within its width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.browser import Watched, watched

Opener = Callable[..., Watched]
MOST_SECONDS = 1.0
WIDTHS = (360, 390, 768, 1100, 2200)
OPENED = "Number(document.body.dataset.ready) / 1000"
# Text and what lies behind it, as the browser computed them; a background that is clear is the one further out.
CONTRASTS = """() => {
  const plain = (colour) => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = colour;
    c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => { for (let e = element; e; e = e.parentElement) {
    const c = plain(getComputedStyle(e).backgroundColor); if (c[3] > 240) return c; } return [255, 255, 255, 255]; };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || box.width < 2 || element.closest("svg, .unseen, script, :disabled, .skip, [hidden]")) continue;
    if (element.closest("label") && element.closest("label").querySelector(":disabled")) continue;
    const [a, b] = [light(plain(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), `${element.tagName} ${element.textContent.trim().slice(0, 40)}`]);
  }
  return found;
}"""
AA = 4.5


def too_faint(page: Page) -> list[Any]:
    found = page.evaluate(CONTRASTS)
    assert len(found) > 50
    return [one for one in found if one[0] < AA]


def test_opens_in_under_a_second(browser: Browser, url: str) -> None:
    times = []
    for _ in range(5):
        with watched(browser, url) as one:
            page = one.go()
            page.wait_for_selector("[data-key='params.total']")
            times.append(page.evaluate(OPENED))
    assert median(times) < MOST_SECONDS


def test_has_figures_at_once(open_page: Opener) -> None:
    page = open_page().page
    figure = page.locator("#headline [data-key='params.total']")
    assert figure.get_attribute("data-value") == "124439808"  # GPT-2 small, tied ends: 124 M of the paper
    assert figure.inner_text() == "124.4 M"


def test_network_and_console_are_watched(browser: Browser, url: str, tmp_path: Path) -> None:
    """The twin of every other test: a page that logs, or asks for something, does not pass."""
    far = tmp_path / "far.html"
    far.write_text("<!doctype html><img src='far.png'>")
    for place, wrong, told in ((url, "console.warn('planted')", "planted"), (far.as_uri(), "1", "asked for.*far.png")):
        opened = watched(browser, place)
        one = opened.__enter__()
        one.go().evaluate(wrong)
        one.rested()
        with pytest.raises(AssertionError, match=told):
            opened.__exit__(None, None, None)


@pytest.mark.parametrize("fragment", ["", "#spec=falcon-7b&beside=llama3-8b", "#spec=gemma3-1b&beside=falcon-h1-0.5b"])
def test_nothing_is_wider_than_the_page(open_page: Opener, fragment: str) -> None:
    one = open_page(fragment)
    for width in WIDTHS:
        one.page.set_viewport_size({"width": width, "height": 800})
        assert one.rested().evaluate("document.documentElement.scrollWidth") <= width
    one.page.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    for width in WIDTHS:
        one.page.set_viewport_size({"width": width, "height": 800})
        assert one.rested().evaluate("document.documentElement.scrollWidth") <= width


def test_a_wide_element_would_be_seen(open_page: Opener) -> None:
    page = open_page("", viewport={"width": 360, "height": 800}).page
    page.evaluate("() => (document.querySelector('#main').style.width = '500px')")
    assert page.evaluate("document.documentElement.scrollWidth") > 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Opener, scheme: str) -> None:
    page = open_page("#spec=llama3-8b&layers=31&beside=gpt-j-6b", color_scheme=scheme).page
    assert too_faint(page) == []
    page.evaluate("() => (document.querySelector('#parameters-title').style.color = 'var(--rule)')")
    assert len(too_faint(page)) == 1


def test_light_and_dark(open_page: Opener) -> None:
    light = open_page("", color_scheme="light")
    dark = open_page("", color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = [one.page.evaluate(paper) for one in (light, dark)]
    assert seen[0] != seen[1]
    toggle = light.page.get_by_role("button", name="Dark")
    assert toggle.get_attribute("aria-pressed") == "false"
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    light.page.wait_for_timeout(200)
    assert light.page.evaluate(paper) == seen[1]
    light.page.reload()
    assert light.page.evaluate(paper) == seen[1]


def test_still_where_that_is_wanted(open_page: Opener) -> None:
    moving = "getComputedStyle(document.querySelector('button')).transitionDuration"
    assert open_page("", reduced_motion="reduce").page.evaluate(moving) == "0s"
    assert open_page("", reduced_motion="no-preference").page.evaluate(moving) != "0s"
