"""The report of a model as a page: where the parameters are, how the cache grows, which layers there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from archc.analysis.curve import CacheCurve
from archc.analysis.report import Report
from archc.render.colours import PARTS
from archc.render.pages.page import filled, preformatted
from archc.render.pages.scale import Scale
from archc.render.report import parts_of, report_lines

_TICKS = 4


class Part(NamedTuple):
    """A part of the model, and where its share of the whole begins, in percent."""

    key: str
    label: str
    params: int
    share: float
    start: float


class Run(NamedTuple):
    """Neighbouring layers of one kind; places in percent of all layers."""

    kind: str
    first: int
    last: int
    start: float
    wide: float
    colour: str


class Place(NamedTuple):
    """A point of the cache's curve, in percent from the left and from the bottom."""

    context: int
    bytes: int
    x: float
    y: float


def report_page(report: Report, curve: CacheCurve, kinds: Sequence[str]) -> str:
    """The page of a report, which holds it as JSON; `kinds` is that of every layer."""
    points = [point for point in curve.points if point.bytes]
    up = Scale.over([*(point.bytes for point in points), curve.weights_bytes])
    first, last = curve.points[0].context, curve.points[-1].context
    octaves = math.log2(last / first)

    def across(context: int) -> float:
        return round(100 * math.log2(context / first) / octaves, 2) if octaves else 100.0

    placed = [Place(*point, across(point.context), up.at(point.bytes)) for point in points]
    step = max(1, math.ceil(octaves / _TICKS))
    ticks = [2**power for power in range(last.bit_length() - 1, -1, -step) if 2**power >= first]
    return filled(
        "report.html.j2",
        dict(report),
        parts=_parts(report),
        runs=_runs(kinds) if len(set(kinds)) > 1 else [],
        curve=curve,
        points=placed,
        own=next((place for place in placed if place.context == curve.own.context), None),
        up=up,
        ticks=[(across(tick), tick) for tick in ticks],
        text=preformatted(line.plain for line in report_lines(report)),
    )


def _parts(report: Report) -> list[Part]:
    params, found, start = report["params"], [], 0.0
    for key, label, count in parts_of(params):
        share = count / params["total"]
        found.append(Part(key, label, count, share, round(100 * start, 3)))
        start += share
    return found


def _runs(kinds: Sequence[str]) -> list[Run]:
    colours = {kind: list(PARTS)[index % len(PARTS)] for index, kind in enumerate(dict.fromkeys(kinds))}
    found, first = [], 0
    for kind, run in groupby(kinds):
        count = len(list(run))
        start, wide = 100 * first / len(kinds), 100 * count / len(kinds)
        found.append(Run(kind, first, first + count - 1, round(start, 3), round(wide, 3), colours[kind]))
        first += count
    return found
