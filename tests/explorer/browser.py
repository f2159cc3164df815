"""A Chromium to look at the explorer with, and pages in it that notice what they must not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
NEEDED = "ARCHC_NEED_CHROMIUM"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
DESKTOP = {"width": 1440, "height": 900}
# A frame is drawn after a change, and what can wait follows once nothing moves.
READY = "!document.querySelector('#data') || document.body.dataset.ready"
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def chromium_path() -> str:
    """Where Chromium is. Skips the test where there is none, or fails it where there has to be one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = f"no Chromium on PATH ({', '.join(NAMES)})"
        if os.environ.get(NEEDED):
            pytest.fail(f"{reason}, and {NEEDED} is set", pytrace=False)
        pytest.skip(reason)
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page with all that it logged and asked for."""

    page: Page
    url: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def elsewhere(self) -> list[str]:
        """What was asked for, but the page itself and pictures within it."""
        own = self.url.split("#", maxsplit=1)[0]
        return [url for url in self.asked if url.split("#", maxsplit=1)[0] != own and not url.startswith("data:")]

    def go(self, fragment: str = "") -> Page:
        """Open the page with a view in its address, and wait until it is drawn."""
        self.page.goto("about:blank")  # else another view of the same page is no new one
        self.page.goto(f"{self.url}{fragment}")
        self.page.wait_for_function(READY)
        return self.drawn()

    def drawn(self) -> Page:
        """The page, once the last change can be seen."""
        self.page.evaluate(DRAWN)
        return self.page

    def rested(self) -> Page:
        """The page, once also what waits for a rest (curves, the address) is there."""
        self.page.wait_for_timeout(350)
        return self.drawn()


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own. It must end without a word on the console and without asking for anything."""
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    try:
        page = context.new_page()
        one = Watched(page, url)
        page.on("console", lambda message: one.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: one.said.append(f"uncaught: {error}"))
        page.on("request", lambda request: one.asked.append(request.url))
        yield one
        if one.said or one.elsewhere:
            raise AssertionError(f"said: {one.said}; asked for: {one.elsewhere}")
    finally:
        context.close()
