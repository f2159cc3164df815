"""The generated pages, all of them, and how they get to `docs/reference/`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs._site import commands, diagnostics, families, faults, language, models, repository

FOLDER = "reference"


def write(docs: Path) -> None:
    """Bring `docs/reference/` up to date. A file that is as it should be keeps its time: Sphinx passes over it."""
    folder = docs / FOLDER
    wanted = {folder / f"{name}.md": text for name, text in generated().items()}
    for file in folder.rglob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")


def generated() -> dict[str, str]:
    """The text of every generated page, by its name below `reference/`."""
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in _pages()}


def _pages() -> Iterator[tuple[str, list[str]]]:
    for source in (language, diagnostics, faults, models, families, commands, repository):
        yield from source.pages()
