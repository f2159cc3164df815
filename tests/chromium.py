"""A Chromium for the tests that look at pages: Debian's, or whichever is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

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
