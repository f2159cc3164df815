"""Models side by side: the figures in which designs differ, and what they cost.

As many models stand beside each other as fit into 80 columns; further ones follow in tables of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from archc.analysis.report import Report
from archc.parts.feed_forward import ACTIVATION_NAMES
from archc.parts.norm import NORM_NAMES
from archc.render.units import both_bytes, exact, operations, percent, short_count

WIDTH = 80
NARROWEST = 18
"""Columns that a model gets at least, so that three stand beside the labels."""
GAP = "  "
_NO_BREAK = "\u00a0"

_GATED = {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "relu": "ReGLU"}

Compared = tuple[str, list[str]]
"""A label, and the cell of every model."""


def compared_rows(reports: Sequence[Report]) -> list[Compared]:
    """The rows of the table without its head; rows that say nothing about any of the models are left out."""
    contexts = {report["kv_cache"]["context"] for report in reports}
    rows = (
        ("layers, width", [f"{exact(one['layers'])}, {exact(one['hidden_size'])}" for one in reports]),
        ("heads/KV, size", [_heads(one) for one in reports]),
        ("mixers", _unless_alike([_mixers(one) for one in reports], "")),
        ("feed-forward", [_ffn(one) for one in reports]),
        ("norm", [" and ".join(NORM_NAMES[norm] for norm in one["norms"]) or "none" for one in reports]),
        ("positions", [_positions(one) for one in reports]),
        ("vocabulary, tied", [f"{exact(one['vocab_size'])}, {'yes' if one['tied'] else 'no'}" for one in reports]),
        ("context", [exact(one["context"]) for one in reports]),
        ("parameters", [short_count(one["params"]["total"]) for one in reports]),
        ("active", _unless_alike([_active(one) for one in reports], "")),
        ("ffn share", [percent(one["block"]["ffn_share"]) for one in reports]),
        ("cache per token", [both_bytes(one["kv_cache"]["bytes_per_token"]) for one in reports]),
        ("in windows", _unless_alike([_bytes(one["kv_cache"]["window_bytes_per_token"]) for one in reports], "")),
        ("fixed states", _unless_alike([_bytes(one["kv_cache"]["fixed_state_bytes"]) for one in reports], "")),
        ("cache at context", [_at_context(one, named=len(contexts) > 1) for one in reports]),
        ("weights", [f"{both_bytes(one['weights']['bytes'])} ({one['weights']['dtype']})" for one in reports]),
        ("FLOPs per token", [operations(one["flops"]["forward_per_token"]) for one in reports]),
    )
    return [(label, cells) for label, cells in rows if cells]


def _unless_alike(cells: list[str], silent: str) -> list[str]:
    return [] if set(cells) == {silent} else cells


def _heads(report: Report) -> str:
    if "attention" not in report:
        return "none"
    heads = report["attention"]
    return f"{heads['heads']}/{heads['kv_heads']}, {heads['head_dim']}"


def _mixers(report: Report) -> str:
    if not set(report["mixers"]) - {"gqa"}:
        return ""
    return ", ".join(f"{layers} {kind}" for kind, layers in report["mixers"].items())


def _ffn(report: Report) -> str:
    if "ffn" not in report:
        return "none"
    ffn = report["ffn"]
    activation = ffn["activation"] or ""
    named = (_GATED if ffn["gated"] else ACTIVATION_NAMES).get(activation, activation or ffn["kind"])
    if ffn["gated"] and activation not in _GATED:
        named = f"gated {named}"
    if ffn["kind"] != "moe" or "moe" not in report:
        return f"{named} {exact(ffn['width'])}"
    return f"{report['moe']['top_k']} of {report['moe']['experts']} {named} {exact(ffn['width'])}"


def _positions(report: Report) -> str:
    named = {"sinusoidal": "sines", "alibi": "ALiBi"}
    found = []
    for kind in report["positions"]:
        if kind == "learned":
            found.append(f"table of {exact(report['limits']['hard_context'] or 0)}")
        elif kind == "rope":
            rope = report["rope"]
            tables = [table for table in rope.get("by_kind", {}).values() if table] or [rope]
            bases = dict.fromkeys(f"{table['base']:,.10g}" for table in tables)
            found.append(f"RoPE base {' and '.join(bases)}")
        else:
            found.append(named.get(kind, kind))
    return ", ".join(found) or "none"


def _active(report: Report) -> str:
    params = report["params"]
    return "" if params["active"] == params["total"] else short_count(params["active"])


def _bytes(count: float) -> str:
    return both_bytes(count) if count else ""


def _at_context(report: Report, *, named: bool) -> str:
    cache = report["kv_cache"]
    size = both_bytes(cache["bytes_at_context"])
    return f"{size} at {exact(cache['context'])}" if named else size


def print_compared(names: Sequence[str], rows: Sequence[Compared], out: Console) -> None:
    """The table of `compared_rows` under the names of the models, in parts that fit into 80 columns."""
    label_width = max(len(label) for label, _ in rows)
    room = WIDTH - label_width
    together = min(len(names), room // (NARROWEST + len(GAP)))
    width = room // together - len(GAP)
    for first in range(0, len(names), together):
        if first:
            out.print()
        chosen = slice(first, first + together)
        part = [(label, cells[chosen]) for label, cells in [("", list(names)), *rows]]
        for index, (label, cells) in enumerate((label, cells) for label, cells in part if any(cells)):
            for line in _wrapped(label.ljust(label_width), cells, width):
                out.print(Text(line, style="bold" if index == 0 else ""))


def _wrapped(label: str, cells: Sequence[str], width: int) -> Iterator[str]:
    """The lines of one row."""
    columns = [_cell(cell, width) for cell in cells]
    for number in range(max(len(column) for column in columns)):
        texts = [(column[number] if number < len(column) else "").ljust(width) for column in columns]
        yield GAP.join([label if number == 0 else " " * len(label), *texts]).rstrip()


def _cell(text: str, width: int) -> list[str]:
    """The lines of a cell: a number stays with its unit, and a second figure with the = before it."""
    glued = re.sub(r"(?<=[0-9]) (?=[a-zA-Z]{1,5}\b)|(?<=\b(?:at|of)) |(?<==) ", _NO_BREAK, text)
    return [line.replace(_NO_BREAK, " ") for line in wrap(glued, width)] or [""]
