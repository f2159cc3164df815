"""Reads the pages that archc writes as a browser would: elements, words, and what would be loaded or run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

VOID = {"meta", "br", "link", "img", "input"}
ACTIVE = {"script", "iframe", "object", "embed", "img", "link", "base", "form", "image", "foreignobject", "a", "audio"}


@dataclass
class Element:
    """An element: its tag, attributes, and all words within."""

    tag: str
    attributes: dict[str, str]
    words: str = ""
    inside: list[str] = field(default_factory=list)
    """Tags of the elements that it is in."""


class Page(HTMLParser):
    """All elements of a page in order; it must be well formed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(page)
        self.close()
        assert not self._open, f"{self._open[-1].tag} is not closed"

    @classmethod
    def read(cls, file: Path) -> Page:
        return cls(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, inside=[one.tag for one in self._open])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag, f"{tag} is closed where another is open"

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.words += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements with this tag that have these attributes (data_x for data-x), as prefixes of their values."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = [one for one in self.elements if one.tag == tag and wanted.keys() <= one.attributes.keys()]
        return [one for one in found if all(one.attributes[key].startswith(value) for key, value in wanted.items())]

    def document(self) -> Any:
        """The JSON in the page."""
        (element,) = self.all("pre", id="document")
        return json.loads(element.words)

    def outline(self) -> list[str]:
        """Headings, and of each table the heads of its columns and how many rows it has."""
        found: list[str] = []
        for one in self.elements:
            if one.tag in {"h1", "h2", "h3", "summary"}:
                found.append(f"{one.tag} {one.words.strip()}")
            elif one.tag == "table":
                found.append("table: ")
            elif one.tag == "th" and one.attributes.get("scope") == "col":
                found[-1] += f"[{'chart' if 'chart' in one.attributes.get('class', '') else one.words.strip()}]"
            elif one.tag == "tr" and "thead" not in one.inside:
                found[-1] += "-"
            elif one.tag == "svg" and "table" not in one.inside:
                found.append("svg")
        return found

    def outside(self) -> list[str]:
        """Everything by which the page could load or run something."""
        active = [one.tag for one in self.elements if one.tag in ACTIVE]
        handlers = [name for one in self.elements for name in one.attributes if name.startswith("on")]
        styles = " ".join(one.words for one in self.all("style"))
        links = re.findall(r"url\(|@import|expression\(", styles)
        places = [
            name for one in self.elements for name in one.attributes if name in {"src", "href", "xlink:href", "srcset"}
        ]
        return active + handlers + links + places


def unreadable(page: Page) -> list[str]:
    """What a reader who does not see the page, or has no mouse, could not use."""
    found = []
    (html,) = page.all("html")
    found += [] if html.attributes.get("lang") else ["no language"]
    found += [] if page.all("title")[0].words.strip() else ["no title"]
    found += [f"{one.words!r} is a head of nothing" for one in page.all("th") if "scope" not in one.attributes]
    ids = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
    found += [f"two of {name}" for name in set(ids) if ids.count(name) > 1]
    found += [
        f"{one.tag} can be reached and has no name"
        for one in page.elements
        if "tabindex" in one.attributes and not one.attributes.get("aria-label")
    ]
    for one in page.all("svg"):
        hidden = one.attributes.get("aria-hidden") == "true"
        found += [] if hidden or "div" in one.inside else ["a chart that is read out"]
    levels = [int(one.tag[1]) for one in page.elements if one.tag in {"h1", "h2", "h3"}]
    found += [] if levels[0] == 1 and levels.count(1) == 1 else ["no first heading"]
    found += ["a heading is skipped" for one, other in pairwise(levels) if other - one > 1]
    return found
