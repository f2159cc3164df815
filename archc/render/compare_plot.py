"""Models side by side as an image: the cache against the context, and where the parameters are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from archc.analysis.curve import CacheCurve
from archc.analysis.report import Report
from archc.render.colours import MUTED, PAPER, PARTS, SERIES
from archc.render.images import Picture, picture, plain_axis, tick_tokens, write_image
from archc.render.report import GROUPS, parts_of
from archc.render.units import both_bytes, decimal_bytes, exact, percent, short_count
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Pixels.
_WIDTH, _LEFT, _RIGHT = 760, 120, 34
_CURVES = 300
_ROW = 26
"""What a model takes in each of the lower panels."""
_HEAD, _BETWEEN, _FOOT = 56, 74, 58
_KEY_ROW = 17
_COUNTS, _GAP = 290, 46

_ACROSS = 3
"""Names of models in a row of the key."""
_NAME = 26
_DASHES: tuple[Any, ...] = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
"""So that more models than colours are told apart."""
_KEY: dict[str, Any] = {"loc": "lower left", "borderaxespad": 0.0, "borderpad": 0.0, "columnspacing": 1.2}


def write_compare_plot(
    curves: Sequence[CacheCurve], reports: Sequence[Report], target: str, *, force: bool = False
) -> None:
    """Write the image; a file that is not archc's own is replaced only with `force`."""
    top = _HEAD + _KEY_ROW * (1 + -(-len(curves) // _ACROSS))
    lower, rows = top + _CURVES + _BETWEEN, _ROW * len(curves) + 10
    height, inner = lower + rows + _FOOT, _WIDTH - _LEFT - _RIGHT
    about = "Above, the bytes of the KV cache against tokens, both logarithmic. Below, the parameters of each part."
    with picture(f"{', '.join(curve.name for curve in curves)}: cache and parameters", about, _WIDTH, height) as drawn:
        cache, counts, shares = (
            drawn.figure.add_axes((left / _WIDTH, 1 - (above + high) / height, wide / _WIDTH, high / height))
            for left, above, wide, high in (
                (_LEFT, top, inner, _CURVES),
                (_LEFT, lower, _COUNTS, rows),
                (_LEFT + _COUNTS + _GAP, lower, inner - _COUNTS - _GAP, rows),
            )
        )
        batch = reports[0]["kv_cache"]["batch"]
        title = f"KV cache of {'a sequence' if batch == 1 else f'{exact(batch)} sequences'}, against context"
        drawn.figure.text(_LEFT / _WIDTH, 1 - 26 / height, _short(drawn.title, 72), fontsize=10.5, weight="bold")
        drawn.figure.text(_LEFT / _WIDTH, 1 - 46 / height, title, fontsize=8.5, weight="bold")
        _draw_curves(drawn, cache, curves)
        _draw_parts(drawn, counts, reports, shares=False)
        _draw_parts(drawn, shares, reports, shares=True)
        _add_part_key(drawn, reports, height)
        write_image(drawn, target, force=force)


def _draw_curves(drawn: Picture, axes: Axes, curves: Sequence[CacheCurve]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    lines = []
    for number, curve in enumerate(curves):
        colour = SERIES[number % len(SERIES)].light
        style = {"color": colour, "linestyle": _DASHES[number // len(SERIES) % len(_DASHES)]}
        about, name = {"model": curve.name}, curve.name
        points = [point for point in curve.points if point.bytes]  # a logarithm has no place for none
        (line,) = axes.plot(*zip(*points, strict=True), **style) if points else axes.plot([], [], **style)
        lines.append(line)
        drawn.say(
            line,
            f"cache-{number}",
            f"{name}: {both_bytes(curve.own.bytes)} at {exact(curve.own.context)} tokens",
            **about,
            points=" ".join(f"{point.context},{point.bytes}" for point in points),
        )
        weights = axes.axhline(curve.weights_bytes, linewidth=1, alpha=0.35, zorder=1, **style)
        sentence = f"{name}: weights of {both_bytes(curve.weights_bytes)}"
        drawn.say(weights, f"weights-{number}", sentence, **about, bytes=curve.weights_bytes)
        if curve.own in points:
            (own,) = axes.plot(*curve.own, "o", color=colour, markeredgecolor=PAPER.light, markersize=7, zorder=4)
            sentence = f"{name}: its context of {exact(curve.own.context)}"
            drawn.say(own, f"context-{number}", sentence, **about, context=curve.own.context, bytes=curve.own.bytes)
        if points and points[-1].context == curve.wall:
            (wall,) = axes.plot(*points[-1], "|", color=colour, markersize=17, markeredgewidth=2, zorder=3)
            sentence = f"{name}: its table of positions ends at {exact(curve.wall)}"
            drawn.say(wall, f"wall-{number}", sentence, **about, wall=curve.wall)
    tick_tokens(axes, curves[0].points[0].context, max(curve.points[-1].context for curve in curves))
    axes.set_xlabel("tokens")
    axes.yaxis.set_major_formatter(lambda size, _: decimal_bytes(size))
    axes.set_yticks([], minor=True)
    plain_axis(axes, across=True, up=True)
    _add_curve_keys(axes, lines, [_short(curve.name) for curve in curves], any(curve.wall for curve in curves))


def _add_curve_keys(axes: Axes, lines: list[Any], names: list[str], walls: bool) -> None:
    """What lines and marks stand for, above the axes."""
    from matplotlib.lines import Line2D

    by_row = list(chain.from_iterable(range(column, len(lines), _ACROSS) for column in range(_ACROSS)))
    place = {"bbox_to_anchor": (0, 1 + (_KEY_ROW + 6) / _CURVES), "ncols": min(_ACROSS, len(lines))}
    axes.add_artist(axes.legend([lines[at] for at in by_row], [names[at] for at in by_row], **place, **_KEY))
    grey = MUTED.light
    marks = [
        Line2D([], [], color=grey, marker="o", linestyle="none", markersize=6, label="own context"),
        Line2D([], [], color=grey, linewidth=1, alpha=0.5, label="own weights"),
        Line2D([], [], color=grey, marker="|", linestyle="none", markersize=10, label="table of positions ends"),
    ]
    shown = marks if walls else marks[:2]
    axes.legend(handles=shown, ncols=len(shown), bbox_to_anchor=(0, 1 + 5 / _CURVES), **_KEY)


def _draw_parts(drawn: Picture, axes: Axes, reports: Sequence[Report], *, shares: bool) -> None:
    widest = max(report["params"]["total"] for report in reports)
    names = dict(GROUPS)
    for row, report in enumerate(reports):
        total, left = report["params"]["total"], 0.0
        for part, _, count in parts_of(report["params"]):
            wide = count / total if shares else count
            edge = 0.6 if shares else 0.0  # a bar may be too short to have one
            (bar,) = axes.barh(row, wide, 0.68, left, color=PARTS[part].light, edgecolor=PAPER.light, linewidth=edge)
            left += wide
            drawn.say(
                bar,
                f"{'share' if shares else 'count'}-{row}-{part}",
                f"{report['name']}, {names[part]}: {exact(count)} parameters, {percent(count / total)}",
                model=report["name"],
                part=part,
                count=count,
            )
        if not shares:
            words: dict[str, Any] = {"va": "center", "color": MUTED.light, "fontsize": 7.5}
            axes.text(left + widest * 0.015, row, short_count(total), **words)
    axes.set_yticks(range(len(reports)), ["" if shares else _short(report["name"]) for report in reports])
    axes.set_ylim(len(reports) - 0.5, -0.5)
    axes.set_xlim(0, 1 if shares else widest * 1.16)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda at, _: f"{at:.0%}" if shares else short_count(at))
    axes.set_title("As a share" if shares else "Parameters by part")
    plain_axis(axes, across=True, up=False)


def _add_part_key(drawn: Picture, reports: Sequence[Report], height: int) -> None:
    """What colours stand for, below the bars."""
    from matplotlib.patches import Patch

    used = {part for report in reports for part, _, _ in parts_of(report["params"])}
    patches = [Patch(color=PARTS[part].light, label=label) for part, label in GROUPS if part in used]
    small = {"handlelength": 1.0, "handleheight": 1.0, "handletextpad": 0.5}
    place = {"bbox_to_anchor": (_LEFT / _WIDTH, 10 / height), "ncols": len(patches)}
    drawn.figure.legend(handles=patches, **place, **small, **_KEY)


def _short(name: str, most: int = _NAME) -> str:
    name = printable(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"
