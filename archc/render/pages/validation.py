"""The verdict of the gate as a page: what is wrong and what explains it, then each probe, layer, position and mistake.

It is read off the validation JSON, which is in the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from archc.errors import ArchcError
from archc.render.findings import Document, findings, holds
from archc.render.pages.page import filled
from archc.render.pages.scale import Scale
from archc.spec.diagnostics import Level

_BIN = 1.5
"""Percent of the axis in which mistakes stand upon each other."""


class Point(NamedTuple):
    """A point inside a model, where it is drawn in percent, and how many floors a port is off there."""

    name: str
    at: float
    figure: float | None


class Group(NamedTuple):
    """A layer, or what stands before or after all of them: from where to where, and its figures by their column."""

    name: str
    start: float
    wide: float
    cells: list[tuple[str, float | None] | None]


class Inside(NamedTuple):
    """The points of a model in order."""

    probe: str
    scale: Scale
    bound: float
    points: list[Point]
    groups: list[Group]
    columns: list[str]
    first: Point | None


class Strip(NamedTuple):
    """A probe, position by position, and the first of them beyond the bound."""

    probe: str
    width: int
    figures: list[float | None]
    first: int | None


class Mistake(NamedTuple):
    """A mistake that was planted, and what became of it; `at` and `up` (percent, and a place in its pile) if it ran."""

    name: str
    field: str
    outcome: str
    figure: float | None
    probe: str
    why: str
    seen: bool
    at: float | None
    up: int


def validation_page(document: Document, *, strict: bool = False) -> str:
    """The page of a run with a verdict; with `strict`, mistakes that would go unseen are wrong."""
    bound: float = document["bound"]
    found = [one for one in findings(document, strict=strict) if one.rule not in {"diagnosis", "parity"}]
    probes: Sequence[Mapping[str, Any]] = document["probes"]
    drifts = _drifts(document)
    faults: Mapping[str, Any] = document["faults"] or {"seen": [], "survived": [], "equivalent": []}
    mistake_scale = Scale.over((one["times_floor"] for one in (*faults["seen"], *faults["survived"])), 1, bound, 1000)
    return filled(
        "validation.html.j2",
        document,
        passed=holds(document, strict=strict),
        verdict=document["verdict_strictly" if strict else "verdict"],
        explanations=_explanations(document),
        wrong=[one for one in found if one.level is Level.ERROR],
        beside=[one for one in found if one.level is not Level.ERROR],
        scale=Scale.over((one["times_floor"] for one in probes), 0.1, bound, 100),
        strips=[_strip(one, bound) for one in probes if one["by_position"]["times_floor"]],
        strip_scale=Scale.over(
            (figure for one in probes for figure in one["by_position"]["times_floor"]), 0.01, bound, 100
        ),
        inside=_inside(document),
        drifts=drifts,
        drift_scale=Scale.over((figure for one in drifts for figure in one.figures), 0.01, bound, 100),
        mistakes=_mistakes(faults, mistake_scale),
        mistake_scale=mistake_scale,
    )


def stopped_page(target: str, error: ArchcError) -> str:
    """The page of a run that has no verdict, and why."""
    return filled("stopped.html.j2", target=target, error=error)


def _explanations(document: Document) -> list[list[Mapping[str, Any]]]:
    """The mistakes that explain a port, those of one explanation together."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in document["diagnosis"]:
        found[one["explains"]].append(one)
    return list(found.values())


def _strip(probe: Mapping[str, Any], bound: float) -> Strip:
    width, figures = probe["by_position"]["width"], probe["by_position"]["times_floor"]
    beyond = (index * width for index, figure in enumerate(figures) if figure is None or figure > bound)
    return Strip(probe["name"], width, figures, next(beyond, None))


def _drifts(document: Document) -> list[Strip]:
    """What adds up in a streamed run, layer by layer."""
    stream = document["stream"] or {"drift": {}}
    return [Strip(probe, 1, list(points.values()), None) for probe, points in stream["drift"].items() if points]


def _inside(document: Document) -> Inside | None:
    """The layers judged alone, if they were."""
    found = document["blockwise"]
    if found is None:
        return None
    figures: Mapping[str, float | None] = found["points"]
    first = (document["first_divergence"] or {}).get("point")
    wide = 100 / len(figures)
    points = [Point(name, round((n + 0.5) * wide, 3), figure) for n, (name, figure) in enumerate(figures.items())]
    columns = list(dict.fromkeys(_within(point.name)[1] for point in points))
    members: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        members[_within(point.name)[0]].append(point)
    groups = []
    for name, own in members.items():
        by_column = {_within(one.name)[1]: (one.name, one.figure) for one in own}
        start = round(own[0].at - wide / 2, 3)
        groups.append(Group(name, start, round(len(own) * wide, 3), [by_column.get(column) for column in columns]))
    scale = Scale.over(figures.values(), 0.1, found["bound"], 100)
    marked = next((one for one in points if one.name == first), None)
    return Inside(found["probe"], scale, found["bound"], points, groups, columns, marked)


def _within(point: str) -> tuple[str, str]:
    """The layer of a point and its name there: `layers.3.mixer.q` is in 3, `embed` is the output of itself."""
    stem, _, rest = point.removeprefix("layers.").partition(".")
    return (stem, rest) if point.startswith("layers.") and rest else (point, "out")


def _mistakes(faults: Mapping[str, Any], scale: Scale) -> list[Mistake]:
    """Every mistake: those that would pass, that were seen, weakest first, that raise, and that are none."""
    piles: dict[int, int] = defaultdict(int)
    found = []
    ran = [(one, "MISSED") for one in faults["survived"]]
    ran += [(one, "seen") for one in sorted(faults["seen"], key=_strength) if not one["loud"]]
    for one, outcome in ran:
        at = scale.at(one["times_floor"])
        pile = round(at / _BIN)
        place = (min(100.0, pile * _BIN), piles[pile])
        seen = outcome == "seen"
        found.append(Mistake(one["fault"], one["field"], outcome, one["times_floor"], one["probe"], "", seen, *place))
        piles[pile] += 1
    loud = [one for one in faults["seen"] if one["loud"]]
    found += [Mistake(one["fault"], one["field"], "raises", None, "", "", True, None, 0) for one in loud]
    none = faults["equivalent"]
    return found + [Mistake(one["fault"], "", "no mistake", None, "", one["why"], True, None, 0) for one in none]


def _strength(one: Mapping[str, Any]) -> float:
    return float("inf") if one["times_floor"] is None else float(one["times_floor"])
