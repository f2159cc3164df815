"""One page for all tests of the explorer: tracing the formulas of every spec takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.explorer.browser import Watched, watched


@pytest.fixture(scope="session")
def html() -> str:
    """The page of all shipped specs."""
    from archc.explorer.data import page_data
    from archc.explorer.page import page
    from archc.files import stamped_html

    return stamped_html(page(page_data(())))


@pytest.fixture(scope="session")
def url(html: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where that page lies on disk."""
    return _on_disk(html, tmp_path_factory.mktemp("explorer"))


@pytest.fixture
def few_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of few models, for tests that make one of their own: tracing all of them takes its time."""
    monkeypatch.setattr("archc.explorer.data._shipped", lambda: ["gpt2", "llama3-8b"])


@pytest.fixture
def open_page(browser: Browser, url: str) -> Iterator[Callable[..., Watched]]:
    """Opens the page (`fragment` is the view in its address); at the end nothing may have gone wrong in any."""
    with ExitStack() as stack:

        def opened(fragment: str = "", **options: Any) -> Watched:
            one = stack.enter_context(watched(browser, url, **options))
            one.go(fragment)
            return one

        yield opened


@pytest.fixture
def open_html(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """The same for another document."""
    with ExitStack() as stack:

        def opened(html: str, **options: Any) -> Watched:
            one = stack.enter_context(watched(browser, _on_disk(html, tmp_path), **options))
            one.go()
            return one

        yield opened


def _on_disk(html: str, folder: Path) -> str:
    path = folder / "explorer.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()
