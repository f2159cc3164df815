"""Colours can be told from the paper and from each other, by people who see colours in any of the usual ways."""

import itertools
import math
import re

import pytest

from archc.analysis.params import Params
from archc.render import colours
from archc.render.colours import PARTS, SERIES, Colour

THEMES = ("light", "dark")
# Linear RGB as seen with a full deficiency: Machado, Oliveira and Fernandes, 2009, table of severity 1.0.
SEEN = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
LEAST_APART = 0.09
"""In OKLab, in which black and white are 1 apart: several times what people just see side by side."""


def linear(colour: str) -> list[float]:
    """Linear RGB (IEC 61966-2-1)."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio."""
    dark, light = sorted(
        sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True)) for c in (one, other)
    )
    return (light + 0.05) / (dark + 0.05)


def oklab(rgb: list[float]) -> tuple[float, ...]:
    """Ottosson's OKLab of linear RGB (https://bottosson.github.io/posts/oklab)."""
    cones = (
        (0.41222147, 0.53633254, 0.05144599),
        (0.2119035, 0.6806995, 0.1073970),
        (0.08830246, 0.28171884, 0.6299787),
    )
    roots = [sum(w * x for w, x in zip(row, rgb, strict=True)) ** (1 / 3) for row in cones]
    axes = (
        (0.21045426, 0.79361779, -0.00407205),
        (1.9779985, -2.4285922, 0.45059371),
        (0.02590404, 0.78277177, -0.80867577),
    )
    return tuple(sum(w * x for w, x in zip(row, roots, strict=True)) for row in axes)


def least_apart(seen: str, chosen: list[str]) -> float:
    """The smallest distance between any two colours, as they are seen."""
    rows = SEEN[seen]
    found = [
        oklab([min(1.0, max(0.0, sum(w * x for w, x in zip(row, linear(one), strict=True)))) for row in rows])
        for one in chosen
    ]
    return min(math.dist(one, other) for one, other in itertools.combinations(found, 2))


@pytest.mark.parametrize("theme", THEMES)
def test_parts_stand_out_from_the_paper(theme: str) -> None:
    paper = getattr(colours.PAPER, theme)
    assert min(contrast(getattr(one, theme), paper) for one in PARTS.values()) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["INK", "MUTED", "PASS", "FAIL"])
def test_words_stand_out_from_the_paper(theme: str, name: str) -> None:
    colour: Colour = getattr(colours, name)
    assert contrast(getattr(colour, theme), getattr(colours.PAPER, theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("seen", SEEN)
def test_parts_are_told_apart(theme: str, seen: str) -> None:
    assert least_apart(seen, [getattr(one, theme) for one in PARTS.values()]) >= LEAST_APART


def test_what_is_often_used_would_not_be() -> None:
    """The first eight of matplotlib's colours: some are faint on white, some are one to the colour blind."""
    usual = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"]
    assert min(contrast(one, "#ffffff") for one in usual) < 3
    assert min(least_apart(seen, usual) for seen in SEEN) < LEAST_APART


def test_contrast_as_published() -> None:
    """Black on white, and the grey that just passes for words: WebAIM's table."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_part_of_a_report_has_a_colour() -> None:
    whole = {key for key in Params.__annotations__ if re.match("total|active|stored", key)}
    assert set(PARTS) == set(Params.__annotations__) - whole
    assert set(SERIES) == set(PARTS.values())
