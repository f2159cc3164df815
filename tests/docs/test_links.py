"""Every relative link of every page leads somewhere, as the repository is read on GitHub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, pages

_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def dead_links(text: str, folder: Path) -> list[str]:
    """The targets in `text`, a page in `folder`, that are not there."""
    targets = _LINK.findall(_CODE.sub("`", text))
    return [target for target in targets if "://" not in target and not (folder / target).exists()]


@pytest.mark.parametrize("page", [*pages(), *(f"docs/codes/{file.name}" for file in ROOT.glob("docs/codes/*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    file = ROOT / page
    assert dead_links(file.read_text(encoding="utf-8"), file.parent) == []


def test_a_dead_link_is_found() -> None:
    text = "[a](README.md) [`b`](nowhere.md#x) `[c](code.md)` [d](https://a.example/b)"
    assert dead_links(text, ROOT) == ["nowhere.md"]
