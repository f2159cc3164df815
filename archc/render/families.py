"""What `archc list --families` prints: every model type that archc knows, and how far it goes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from archc.render.terminal import PROSE_WIDTH

if TYPE_CHECKING:
    from rich.console import Console


def print_families(entries: Iterable[dict[str, Any]], versions: str, out: Console) -> None:
    """A line for each family, and below it the options of its configs that are read, and what is not supported."""
    entries = list(entries)
    widest = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        line = Text(f"{entry['name']:<{widest}}", style="bold")
        out.print(line.append(f"  {entry['tier']:<8}  {reach(entry)}", style="not bold"))
        for label, words in (
            ("because", [entry["refused"]] if entry["refused"] else []),
            ("options", entry["options"]),
            ("refused", entry["unsupported"]),
        ):
            if words:
                text = f"{label}: {', '.join(words)}"
                out.print(textwrap.fill(text, PROSE_WIDTH, initial_indent="    ", subsequent_indent="      "))
    out.print("")
    out.print(f"Checkpoints are tiny ones of the reference's own classes, {versions}.")


def reach(entry: dict[str, Any]) -> str:
    """How far archc goes with a family."""
    if entry["refused"]:
        return "refused"
    if not entry["generated"]:
        return "sizes alone"
    measured = entry["checkpoints"]
    return "code and gate" + (f"; {measured['passed']} of {measured['tried']} checkpoints pass" if measured else "")
