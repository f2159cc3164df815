"""The differences of two specs for a reader at a terminal: at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from archc.analysis.diff import Diff, Difference, Sizes
from archc.render.units import decimal_bytes, exact, short_count
from archc.spec.diagnostics import printable

WIDTH = 80
INDENT = "        "
FIELD = 24
_COLOURS = {"loud": "yellow", "silent": "red"}


def print_diff(found: Diff, out: Console) -> None:
    """Print how the second model differs from the first."""
    for line in _lines(found):
        out.print(line)


def _lines(found: Diff) -> Iterator[Text]:
    for model in (found["a"], found["b"]):
        yield Text.assemble((printable(model["name"]), "bold"), f", {short_count(model['params'])} parameters")
        yield from _wrapped(_cache(model), "  ")
    yield Text()
    for difference in found["differences"]:
        yield from _difference(difference, found["b"]["layers"])
    if found["equal"]:
        yield Text("nothing that is computed differs")
    else:
        yield Text()
        silent = sum(one["failure"] == "silent" for one in found["differences"])
        loud = len(found["differences"]) - silent
        yield Text(f"{loud} loud: the weights of one do not load into a port of the other")
        yield Text(f"{silent} silent: they load, and the port computes something else")
    if found["apart"]:
        yield Text()
        yield Text("besides, without effect")
        for one in found["apart"]:
            shown = "figures of others" if one["field"] == "published" else _change(one)
            yield from _wrapped(f"{one['field']:<{FIELD}} {shown}".rstrip(), INDENT)


def _cache(sizes: Sizes) -> str:
    per_token, at_context = sizes["cache_bytes_per_token"], sizes["cache_bytes_at_context"]
    return f"cache {decimal_bytes(per_token)} per token, {decimal_bytes(at_context)} at its context"


def _difference(difference: Difference, count: int) -> Iterator[Text]:
    failure, name = difference["failure"], difference["field"]
    head = f"{failure:<{len(INDENT)}}{name:<{FIELD}} {_change(difference)}"
    first, *rest = wrap(head, WIDTH, subsequent_indent=INDENT + "  ", drop_whitespace=True) or [head]
    text = Text(first)
    text.stylize(_COLOURS[failure], 0, len(failure))
    yield text
    yield from (Text(line) for line in rest)
    yield from _wrapped("; ".join(_notes(difference, count)), INDENT)


def _notes(difference: Difference, count: int) -> Iterator[str]:
    layers = difference["layers"]
    if layers is not None and len(layers) < count:
        yield f"layers {ranges(layers)}"
    if "along" in difference:
        yield f"with {_value(difference['along'])}"
    effect = difference["effect"]
    if effect is None:
        yield f"cannot be built alone: {difference.get('why', '')}"
        return
    sizes = (
        (short_count, effect["params"], " parameters"),
        (decimal_bytes, effect["cache_bytes_per_token"], " of cache per token"),
        (decimal_bytes, effect["cache_bytes_at_context"], " at the context"),
    )
    changed = [f"{'+' if size > 0 else '−'}{shown(abs(size))}{unit}" for shown, size, unit in sizes if size]
    yield ", ".join(changed) or "the same size"


def _change(one: Mapping[str, Any]) -> str:
    return f"{_value(one['a'])} → {_value(one['b'])}"


def _value(value: Any) -> str:
    """A value as a spec would state it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return exact(value)
    if isinstance(value, float):
        return f"{value:,.10g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return printable(str(value))


def ranges(numbers: Iterable[int]) -> str:
    """Rising numbers, with runs drawn together.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _wrapped(text: str, indent: str) -> Iterator[Text]:
    for line in wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent):
        yield Text(line, style="dim")
