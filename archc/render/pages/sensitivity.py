"""What mistakes cost as a page: a chart and a table in one, grouped by what they are about.

It is read off the sensitivity JSON, which is in the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from archc.render.pages.page import filled
from archc.render.pages.scale import Scale

Row = Mapping[str, Any]

_UNNOTICED = 0.01
"""A change of the loss, relative, that few would look into."""
_LEAST, _MOST = 1e-3, 10.0
"""Percent that the axis of losses shows in any case."""
_LOOKS = {"killed": "pass", "loud": "pass", "equivalent": "plain", "survived": "fail"}
_WORDS = {"killed": "seen", "loud": "raises", "equivalent": "no mistake", "survived": "MISSED"}


class Group(NamedTuple):
    """Mistakes about one section of the language, costliest first."""

    name: str
    rows: list[Row]


def sensitivity_page(document: Mapping[str, Any]) -> str:
    """The page of a sensitivity JSON."""
    faults: Sequence[Row] = document["faults"]
    every = [*faults, *document["controls"]]
    real = [one for one in faults if one["gate"] != "equivalent"]
    quiet = [one for one in real if one["loss_change"] is not None and abs(one["loss_change"]) < _UNNOTICED]
    return filled(
        "sensitivity.html.j2",
        document,
        groups=_groups(faults),
        real=len(real),
        quiet=len(quiet),
        counts={gate: sum(one["gate"] == gate for one in faults) for gate in _WORDS},
        looks=_LOOKS,
        words=_WORDS,
        losses=Scale.over((_percent(one) for one in every), _LEAST, _MOST)._replace(low=-3),
        floors=Scale.over((one["times_floor"] for one in every), 1, 1000),
    )


def _groups(faults: Sequence[Row]) -> list[Group]:
    found: dict[str, list[Row]] = defaultdict(list)
    for one in faults:
        found[one["field"].partition(".")[0]].append(one)
    groups = [Group(name, sorted(rows, key=_cost, reverse=True)) for name, rows in found.items()]
    return sorted(groups, key=lambda group: (_cost(group.rows[0]), group.name), reverse=True)


def _cost(one: Row) -> float:
    """By which mistakes are ordered: what they change the loss by; those that raise cost nothing."""
    if one["gate"] == "loud":
        return -1.0
    return float("inf") if one["loss_change"] is None else abs(float(one["loss_change"]))


def _percent(one: Row) -> float | None:
    return None if one["loss_change"] is None else 100 * abs(one["loss_change"])
