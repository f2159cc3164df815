"""Pages that lie elsewhere in the repository: changes, how to contribute, examples, decisions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from docs._site.markdown import MOVED, rebased

ROOT = Path(__file__).resolve().parents[2]


def pages() -> Iterator[tuple[str, list[str]]]:
    """A copy of each, with its links changed to where the site has their targets, and a list of decisions."""
    for source, page in MOVED.items():
        if page.startswith("reference/"):
            text = (ROOT / source).read_text(encoding="utf-8")
            moved = rebased(text, PurePosixPath(source), PurePosixPath("docs", page))
            yield page.removeprefix("reference/").removesuffix(".md"), moved.splitlines()
    yield "decisions", list(_decisions())


def _decisions() -> Iterator[str]:
    yield from ("# Decisions", "")
    yield "What was decided, why, and what was tried and left."
    yield from ("", "```{toctree}", ":glob:", "", "../adr/*", "```")
