"""The colours of everything that archc draws: images, and pages in light and dark.

Each stands out from the paper by at least 3:1, as WCAG 2.2 asks of graphics (1.4.11), and words by 4.5:1 (1.4.3). Those
of the parts were found by a search for the largest smallest distance between any two of them in OKLab, as people see it
with and without each kind of colour blindness (after Machado, Oliveira and Fernandes, 2009). A colour never says alone
what a word does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Colour(NamedTuple):
    """One colour, on light and on dark paper, as #rrggbb."""

    light: str
    dark: str


PAPER: Final = Colour("#ffffff", "#15181c")
INK: Final = Colour("#1b1f24", "#e8eaed")
MUTED: Final = Colour("#5a6068", "#a9b0b8")
"""Words that matter less, and axes."""
GRID: Final = Colour("#e3e6ea", "#2b3036")
"""Lines behind figures, which may be missed."""
PASS: Final = Colour("#1a7037", "#6fce8c")
FAIL: Final = Colour("#b3261e", "#ff8a80")

PARTS: Final[Mapping[str, Colour]] = {
    "embedding": Colour("#2622b0", "#4b77ff"),
    "position": Colour("#1b78b4", "#2ccdd4"),
    "attention": Colour("#b32800", "#ea6e1e"),
    "ffn": Colour("#6a8dff", "#bdeeff"),
    "router": Colour("#64006b", "#bd4cb2"),
    "norm": Colour("#0f695b", "#abcf68"),
    "other": Colour("#8e93a4", "#a29188"),
    "head": Colour("#cc6e04", "#fff444"),
}
"""Key of a report's `params` → its colour, in the order of the parts in a model."""

SERIES: Final = tuple(
    PARTS[part] for part in ("attention", "embedding", "norm", "head", "router", "ffn", "position", "other")
)
"""Of lines that are no parts, such as models, in order."""
