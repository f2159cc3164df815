"""Loss by position as an SVG image that needs nothing else: no script, no font, no style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from archc.files import stamped_xml, write_stamped
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from archc.validation.lengths import Bucket, LengthsResult

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 740, 64, 392
_REFERENCE, _WITHIN, _PORT, _WRONG, _GREY = "#1f5fa8", "#2e8b57", "#d9730d", "#c62828", "#777777"
_TICKS = 5
_MOST_LOSS = 30.0
"""Nats. A port that is worse is drawn at the upper edge."""


def write_plot(result: LengthsResult, file: Path, *, force: bool = False) -> None:
    """Write the image; a file that is not archc's own is replaced only with `force`."""
    write_stamped(stamped_xml(plot(result)), file, force=force)


def plot(result: LengthsResult) -> str:
    """Lines of the mean losses over positions (a logarithmic axis), and a vertical line at every mark."""
    within = [(bucket, bucket.within) for bucket in result.buckets if bucket.within is not None]
    drawn = [loss for bucket in result.buckets for loss in (bucket.reference, bucket.port)] + [
        loss for _, loss in within
    ]
    finite = [loss for loss in drawn if loss < _MOST_LOSS]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    margin = max((high - low) * 0.08, 0.02)
    across = _Scale(math.log(_centre(result.buckets[0])), math.log(max(result.length, 2)), _LEFT, _RIGHT)
    up = _Scale(low - margin, high + margin, _BOTTOM, _TOP)

    title = printable(f"{result.spec_name}: loss by position on {result.text.name}")
    passages = "1 passage" if result.passages == 1 else f"{result.passages} passages"
    parts = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 22, title, "#000000", size=15),
        _text(_LEFT, 40, f"mean nats a token, {passages} of {result.length:,} tokens", _GREY),
        *_axes(across, up, result.length),
    ]
    for number, mark in enumerate(result.marks):
        x = across(math.log(mark.position))
        anchor, aside = ("start", 4) if x < _RIGHT - 180 else ("end", -4)
        parts += [
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}" stroke="{_GREY}" stroke-dasharray="2 4"/>',
            _text(x + aside, _TOP + 10 + 14 * (number % 4), mark.name, _GREY, size=11, anchor=anchor),
        ]
    if within:
        parts += _line(within, across, up, f'stroke="{_WITHIN}"')
    parts += _line(((b, b.reference) for b in result.buckets), across, up, f'stroke="{_REFERENCE}"')
    parts += _line(((b, b.port) for b in result.buckets), across, up, f'stroke="{_PORT}" stroke-dasharray="7 4"')
    for bucket in result.buckets:
        x, failed = across(math.log(_centre(bucket))), not bucket.passed
        parts.append(_dot(x, up(bucket.reference), _REFERENCE))
        parts.append(_dot(x, up(min(bucket.port, up.most)), _WRONG if failed else _PORT, radius=5 if failed else 2))
    parts += [
        _text(_LEFT, _BOTTOM + 38, "── the same tokens, read within the trained length" if within else "", _WITHIN),
        _text(_RIGHT - 290, 40, "── reference", _REFERENCE),
        _text(_RIGHT - 190, 40, "- - port", _PORT),
        _text(_RIGHT - 120, 40, "● beyond the floor", _WRONG),
    ]
    body = "\n".join(f"  {part}" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" role="img">\n  <title>{escape(title)}</title>\n{body}\n</svg>\n'
    )


class _Scale:
    """Maps figures linearly to pixels."""

    def __init__(self, least: float, most: float, start: float, end: float) -> None:
        self.least, self.most = least, max(most, least + 1e-9)
        self._start, self._end = start, end

    def __call__(self, figure: float) -> float:
        share = (figure - self.least) / (self.most - self.least)
        return self._start + share * (self._end - self._start)


def _centre(bucket: Bucket) -> float:
    return max((bucket.start + bucket.end - 1) / 2, 1.0)


def _axes(across: _Scale, up: _Scale, length: int) -> list[str]:
    parts = [f'<path d="M{_LEFT} {_TOP} V{_BOTTOM} H{_RIGHT}" fill="none" stroke="#000000"/>']
    for number in range(_TICKS + 1):
        loss = up.least + (up.most - up.least) * number / _TICKS
        y = up(loss)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="#e6e6e6"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{loss:.2f}", "#000000", anchor="end", size=11))
    position = 1
    while position <= length:
        if math.log(position) >= across.least:
            x = across(math.log(position))
            parts.append(f'<line x1="{x:.1f}" y1="{_BOTTOM}" x2="{x:.1f}" y2="{_BOTTOM + 5}" stroke="#000000"/>')
            parts.append(_text(x, _BOTTOM + 19, f"{position:,}", "#000000", anchor="middle", size=11))
        position *= 2
    parts.append(_text(_RIGHT, _BOTTOM + 38, "position", "#000000", anchor="end"))
    return parts


def _line(points: Iterable[tuple[Bucket, float]], across: _Scale, up: _Scale, style: str) -> list[str]:
    places = [f"{across(math.log(_centre(bucket))):.1f},{up(min(loss, up.most)):.1f}" for bucket, loss in points]
    return [f'<polyline points="{" ".join(places)}" fill="none" stroke-width="2" {style}/>']


def _dot(x: float, y: float, colour: str, radius: int = 2) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, colour: str, *, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'
    )
