"""Loss by position as an image: the reference, the port, and what is marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from archc.render.colours import FAIL, MUTED, PAPER, SERIES
from archc.render.images import Picture, picture, plain_axis, tick_tokens, write_image
from archc.render.units import figure
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from archc.validation.lengths import Bucket, LengthsResult

_WIDTH, _HEIGHT = 760, 440
_PORT, _REFERENCE, _WITHIN = (colour.light for colour in SERIES[:3])
_MOST_LOSS = 30.0
"""Nats. A port that is worse is drawn at the upper edge."""
_STAIRS = 4
"""Names of marks that stand below each other before the next is at the top again."""
_ROOM = 0.06
"""Of the axis, for each of them."""


def write_plot(result: LengthsResult, target: str, *, force: bool = False) -> None:
    """Write the image; a file that is not archc's own is replaced only with `force`."""
    title = f"{result.spec_name}: loss by position on {result.text.name}"
    about = "Mean losses in nats a token against the position, which is logarithmic; lines at every mark."
    with picture(title, about, _WIDTH, _HEIGHT) as drawn:
        _draw(drawn, drawn.figure.add_axes((0.085, 0.11, 0.89, 0.7)), result)
        write_image(drawn, target, force=force)


def _draw(drawn: Picture, axes: Axes, result: LengthsResult) -> None:
    passages = "1 passage" if result.passages == 1 else f"{result.passages} passages"
    drawn.figure.text(0.085, 0.945, drawn.title, fontsize=10.5, weight="bold")
    about = f"mean nats a token, {passages} of {result.length:,} tokens"
    drawn.figure.text(0.085, 0.9, about, color=MUTED.light)
    axes.set_xscale("log", base=2)
    curves: list[tuple[str, str, Callable[[Bucket], float | None], dict[str, Any]]] = [
        ("within", "the same tokens, read within the trained length", lambda one: one.within, {"color": _WITHIN}),
        ("reference", "reference", lambda one: one.reference, {"color": _REFERENCE}),
        ("port", "port", lambda one: one.port, {"color": _PORT, "linestyle": (0, (5, 2))}),
    ]
    for name, label, loss_of, style in curves:
        points = [(_centre(one), loss) for one in result.buckets if (loss := loss_of(one)) is not None]
        if not points:
            continue
        drawable = [(at, min(loss, _MOST_LOSS)) for at, loss in points]
        (line,) = axes.plot(*zip(*drawable, strict=True), marker=".", label=label, **style)
        said = " ".join(f"{at:g},{loss:.6g}" for at, loss in points)
        drawn.say(line, f"curve-{name}", label, points=said)
    for number, bucket in enumerate(one for one in result.buckets if not one.passed):
        place = (_centre(bucket), min(bucket.port, _MOST_LOSS))
        in_key = "beyond the floor" if number == 0 else None
        (dot,) = axes.plot(*place, "o", color=FAIL.light, markeredgecolor=PAPER.light, markersize=8, label=in_key)
        sentence = f"positions {bucket.start} to {bucket.end - 1}: {figure(bucket.times_floor)} times the floor"
        drawn.say(dot, f"beyond-{number}", sentence, start=bucket.start, end=bucket.end)
    axes.set_ylabel("loss")
    tick_tokens(axes, max(1, int(_centre(result.buckets[0]))), result.length)
    axes.set_xlabel("position")
    plain_axis(axes, across=False, up=True)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) * _ROOM * min(len(result.marks), _STAIRS))
    for number, mark in enumerate(result.marks):
        line = axes.axvline(mark.position, color=MUTED.light, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0)
        drawn.say(line, f"mark-{number}", mark.name, position=mark.position)
        far = mark.position**2 > result.length * _centre(result.buckets[0])  # right of the middle
        axes.annotate(
            printable(mark.name),
            (mark.position, 1),
            (-4 if far else 4, -4 - 11 * (number % _STAIRS)),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if far else "left",
            va="top",
            color=MUTED.light,
            fontsize=7,
        )
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, borderaxespad=0.2, borderpad=0)


def _centre(bucket: Bucket) -> float:
    return max((bucket.start + bucket.end - 1) / 2, 1.0)
