"""The order of the pages, and what is added below them: menus, and where a guide's subject is listed in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from docs._site.markdown import IN_NO_MENU

MENUS: Mapping[str, Sequence[str]] = {
    "Start": ("why-archc", "ten-minutes"),
    "Port a model": (
        "cookbook/README",
        "cookbook/pytorch",
        "cookbook/*",
        "ports",
        "validation",
        "faults",
        "lengths",
        "weights",
        "parallel",
        "reference/examples",
        "reference/llama-cpp",
    ),
    "Design and size": ("explorer", "pictures", "sizes", "language", "importing"),
    "Keep it right": ("ci", "sweep", "security"),
    "Reference": (
        "reference/commands/index",
        "reference/language/index",
        "reference/diagnostics",
        "reference/faults/index",
        "reference/models",
        "reference/families/index",
    ),
    "Inside archc": ("architecture", "add-a-family", "families", "performance", "reference/decisions"),
    "Project": ("reference/contributing", "reference/changes"),
}
"""Pages by menu, as patterns; one that is not there is passed over. What no menu names stands under `REST`."""
REST = "Port a model"
ELSEWHERE = ("index", "codes/*", "adr/*", "reference/**/*")
"""Pages that menus of other pages hold."""

BELOW: Mapping[str, str] = {
    "language": "Every section, every kind and every field: [the language reference](reference/language/index.md).",
    "families": "Every family, with its options: [families and coverage](reference/families/index.md).",
    "importing": "What can be imported: [families and coverage](reference/families/index.md).",
    "faults": "A page for each of them: [faults](reference/faults/index.md).",
    "validation": "What a port can get wrong: [faults](reference/faults/index.md).",
}
"""What a guide says on the site alone, since the page it leads to is there alone."""


def above(name: str) -> str:
    """What is added at the start of a page."""
    return "\n".join([*IN_NO_MENU, ""]) if name.startswith("codes/") else ""


def below(name: str, docs: Path) -> str:
    """What is added at the end of a page."""
    if name == "index":
        return "\n".join(_menus(docs))
    if name.startswith("codes/"):
        return "\n\n[All diagnostics](../reference/diagnostics.md)\n"
    return f"\n\n```{{seealso}}\n{BELOW[name]}\n```\n" if BELOW.get(name) else ""


def _menus(docs: Path) -> Iterator[str]:
    listed: set[str] = set()
    pages = {menu: list(dict.fromkeys(_pages(docs, patterns))) for menu, patterns in MENUS.items()}
    for found in pages.values():
        listed.update(found)
    elsewhere = set(_pages(docs, ELSEWHERE))
    pages[REST] += [name for name in _pages(docs, ["**/*"]) if name not in listed | elsewhere]
    for menu, found in pages.items():
        yield f"\n\n```{{toctree}}\n:hidden:\n:caption: {menu}\n"
        yield from found
        yield "```"


def _pages(docs: Path, patterns: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        for file in sorted(docs.glob(f"{pattern}.md")):
            yield file.relative_to(docs).with_suffix("").as_posix()
