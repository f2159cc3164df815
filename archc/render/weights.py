"""What a comparison of weights found, for people and for machines."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rich.text import Text

from archc.checkpoints.manifest import pattern_of
from archc.render.terminal import console
from archc.render.units import finite
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from archc.checkpoints.compare_weights import Compared, Comparison

_LISTED = 5


def weights_document(found: Comparison) -> dict[str, object]:
    """The comparison as JSON. Numbers that are not finite become null."""
    return {
        "passed": found.passed,
        "a": str(found.a),
        "b": str(found.b),
        "gguf_architecture": found.architecture,
        "layouts_known": found.known,
        "counts": dict(Counter(one.verdict for one in found.tensors)),
        "tensors": [_tensor(one) for one in found.tensors],
    }


def _tensor(one: Compared) -> dict[str, object]:
    apart = one.deviation
    return {
        "a": one.a or None,
        "b": one.b or None,
        "verdict": one.verdict,
        "layout": one.layout or None,
        "text": one.text or None,
        "expected": one.expected,
        "fault": one.fault,
        "dtypes": [dtype or None for dtype in one.dtypes],
        "relative_rms": finite(apart.relative_rms) if apart else None,
        "max_abs": finite(apart.max_abs) if apart else None,
    }


def print_weights(found: Comparison) -> None:
    """A line for every kind of tensor and what became of it, real differences by name, and one word at the end."""
    out = console()
    out.print(Text(printable(f"{found.a} and {found.b}"), style="bold"))
    groups: dict[tuple[str, str, str], list[Compared]] = defaultdict(list)
    for one in found.tensors:
        groups[_kind(one), one.verdict, one.text].append(one)
    kinds = Counter(_kind(one) for one in found.tensors)
    width = max((len(kind) for kind in kinds), default=0)
    for (kind, _, _), members in groups.items():
        line = Text(printable(f"  {len(members):>4} × {kind:<{width}}  "))
        line.append(*_word(members[0]))
        line.append(printable(_detail(members)))
        out.print(line, soft_wrap=True)
        if not members[0].good and len(members) < kinds[kind]:
            which = ", ".join(one.a or one.b for one in members[:_LISTED])
            more = f" and {len(members) - _LISTED} more" if len(members) > _LISTED else ""
            out.print(Text(printable(f"         {which}{more}"), style="dim"), soft_wrap=True)
    if not found.known:
        out.print(f"  How llama.cpp stores {found.architecture} is not known to archc: layouts are named, not judged.")
    out.print("")
    wrong = sum(not one.good for one in found.tensors)
    word = ("PASS", "bold green") if found.passed else ("FAIL", "bold red")
    summary = "the same weights" if found.passed else f"{wrong} of {len(found.tensors)} tensors differ"
    layouts = sum(one.verdict == "layout" for one in found.tensors)
    if found.passed and layouts:
        summary += f", {layouts} of {len(found.tensors)} tensors in a layout of the format"
    out.print(Text("  ").append(*word).append(f": {summary}"))


def _kind(one: Compared) -> str:
    """The names of a tensor on both sides, with N for its layer."""
    a, b = pattern_of(one.a), pattern_of(one.b)
    return a if a == b or not b else b if not a else f"{a} = {b}"


def _word(one: Compared) -> tuple[str, str]:
    words = {"missing": "only in the first", "extra": "only in the second"}
    return words.get(one.verdict, one.verdict), "green" if one.good else "red"


def _detail(members: list[Compared]) -> str:
    first = members[0]
    parts = [first.text] if first.verdict != "equal" else []
    if first.verdict == "unexpected":
        parts.append(f"expected {_expected(first.expected)}" + (f" ({first.fault})" if first.fault else ""))
    rms = [one.deviation.relative_rms for one in members if one.deviation is not None]
    if rms and any(rms):
        types = {one.dtypes for one in members}
        parts.append(f"relative rms {max(rms):.1e}" + (f" ({' and '.join(first.dtypes)})" if len(types) == 1 else ""))
    return ": " + ", ".join(parts) if any(parts) else ""


def _expected(layout: str | None) -> str:
    words = {
        "same": "as it is",
        "rotary": "the rotary permutation",
        "plus_one": "+1 folded in",
        "by_part": "each part of all heads together",
        "negative_exp": "−exp of it",
        "unit_axis": "without axes of size 1",
    }
    return words.get(layout or "", layout or "")
