"""Pages of the explorer that notice what they must not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page

DESKTOP = {"width": 1440, "height": 900}
# A frame is drawn after a change, and what can wait follows once nothing moves.
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


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
        self._wait_for("ready")
        return self.drawn()

    def drawn(self) -> Page:
        """The page, once the last change can be seen."""
        self.page.evaluate(DRAWN)
        return self.page

    def rested(self) -> Page:
        """The page, once also what waits for a rest (curves, the address) is there."""
        self.drawn()
        self._wait_for("rested")
        return self.drawn()

    def _wait_for(self, mark: str) -> None:
        if self.page.locator("#data").count():  # else it is another page, which leaves no marks
            self.page.wait_for_selector(f"body[data-{mark}]", state="attached")


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own. It must end without a word on the console and without asking for anything.

    Nothing on it scrolls by itself for a while, lest a click land where its target was.
    """
    context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
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
