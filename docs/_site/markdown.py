"""Markdown, written: tables, escaped words, and links that hold on the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "reference/changes.md",
    "CONTRIBUTING.md": "reference/contributing.md",
    "examples/README.md": "reference/examples.md",
    "examples/llama_cpp_port/README.md": "reference/llama-cpp.md",
}
"""Pages of the repository outside docs/ → where the site has them, or what it has in their place."""

IN_NO_MENU = ("---", "orphan: true", "---")
"""How a page begins that an index leads to: with two hundred of them the menu would be of no use, and slow to make."""

_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, and an empty one."""
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]


def plain(text: str) -> str:
    """Text of archc's own as Markdown that reads the same; what stands in backticks stays code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        part if index % 2 else re.sub(r"([\\*_<>\[\]|#{}~])", r"\\\1", part) for index, part in enumerate(parts)
    )


def code(text: object) -> str:
    """A value as code."""
    return f"`{text}`"


def relative_to_site(text: str, name: str) -> str:
    """A page of docs/ with links out of it changed to where the site has their targets."""
    return rebased(text, PurePosixPath("docs", f"{name}.md"), PurePosixPath("docs", f"{name}.md"))


def rebased(text: str, source: PurePosixPath, page: PurePosixPath) -> str:
    """Text of `source` with its relative links as they must be on `page`; both are paths below the repository."""

    def moved(match: re.Match[str]) -> str:
        start, target, anchor, end = match.groups()
        if "://" in target or target.startswith(("mailto:", "<")):
            return match[0]
        place = _normal(source.parent / target)
        if place in MOVED:
            place = f"docs/{MOVED[place]}"
            anchor = None if place == "docs/index.md" else anchor  # what README says under it stands elsewhere
        return f"{start}{_relative(place, page.parent)}{anchor or ''}{end}"

    pieces, end = [], 0
    for match in _CODE.finditer(text):
        pieces += [_LINK.sub(moved, text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*pieces, _LINK.sub(moved, text[end:])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _relative(target: str, folder: PurePosixPath) -> str:
    there, here = target.split("/"), list(folder.parts)
    while there and here and there[0] == here[0]:
        there.pop(0)
        here.pop(0)
    return "/".join([".."] * len(here) + there)
