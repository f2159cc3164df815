"""The index of diagnostics. Their pages are docs/codes/*.md, which `archc explain` prints too."""

from __future__ import annotations

from collections.abc import Iterator

from archc import resources
from docs._site.markdown import plain, table

_LEVELS = {"E": "error: cannot be built", "W": "warning: very likely a mistake", "N": "note: advice on a design"}


def pages() -> Iterator[tuple[str, list[str]]]:
    """The one page."""
    yield "diagnostics", list(_index())


def places() -> dict[str, tuple[str, str]]:
    """The page of every code."""
    return {code: (f"codes/{code}", "") for code in _titles()}


def _index() -> Iterator[str]:
    titles = _titles()
    yield from ("# Diagnostics", "")
    yield "What `archc check` says about a spec, all of a file at once, with file, line and column. A code keeps its"
    yield "meaning. On a terminal: `archc explain CODE`."
    for letter, level in _LEVELS.items():
        rows = [(f"[{code}](../codes/{code}.md)", plain(title)) for code, title in titles.items() if code[0] == letter]
        yield from ("", f"## {level[0].upper()}{level[1:]}", "", *table(("code", "title"), rows))


def _titles() -> dict[str, str]:
    files = sorted(resources.folder("codes").glob("*.md"), key=lambda file: file.stem[1:])
    lines = (file.read_text(encoding="utf-8").partition("\n")[0] for file in files)
    return {file.stem: line.partition(": ")[2] for file, line in zip(files, lines, strict=True)}
