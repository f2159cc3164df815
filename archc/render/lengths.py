"""Loss by position, for people and for machines."""

from __future__ import annotations

import math
import platform
from typing import TYPE_CHECKING

from rich.text import Text

from archc.render.terminal import console
from archc.render.units import figure, finite
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from rich.console import Console

    from archc.validation.lengths import Bucket, LengthsResult, Rise
    from archc.validation.marks import Mark

_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"


def lengths_document(result: LengthsResult) -> dict[str, object]:
    """The JSON of `archc lengths`. Numbers that are not finite become null."""
    departure, rise = result.departure, result.rise
    return {
        "passed": result.passed,
        "reference": {
            "kind": "transformers",
            "version": result.reference_version,
            "dtype": "float32",
            "chunk": result.chunks["reference"],
        },
        "port": {"kind": result.port_kind, "name": result.port_name, "chunk": result.chunks["port"]},
        "spec": {"name": result.spec_name},
        "platform": {"python": platform.python_version(), "machine": platform.machine()},
        "text": {
            "name": result.text.name,
            "sha256": result.text.sha256,
            "tokens": len(result.text.ids),
            "passages": result.passages,
            "length": result.length,
        },
        "marks": [_mark_document(mark) for mark in result.marks],
        "buckets": [_bucket_document(bucket) for bucket in result.buckets],
        "departure": None
        if departure is None
        else {
            "position": departure,
            "mark": None if result.departure_mark is None else _mark_document(result.departure_mark),
        },
        "beyond_trained": None if rise is None else _rise_document(rise),
        "notes": list(result.notes),
        "seconds": {name: round(seconds, 3) for name, seconds in result.seconds.items()},
    }


def _mark_document(mark: Mark) -> dict[str, object]:
    return {"position": mark.position, "name": mark.name, "field": mark.field}


def _bucket_document(bucket: Bucket) -> dict[str, object]:
    return {
        "start": bucket.start,
        "end": bucket.end,
        "tokens": bucket.tokens,
        "loss": {
            "reference": finite(bucket.reference),
            "reference_within_trained": None if bucket.within is None else finite(bucket.within),
            "port": finite(bucket.port),
        },
        "floor": {"max_abs": finite(bucket.floor.max_abs), "rms": finite(bucket.floor.rms)},
        "deviation": {"max_abs": finite(bucket.deviation.max_abs), "rms": finite(bucket.deviation.rms)},
        "times_floor": finite(bucket.times_floor),
        "passed": bucket.passed,
    }


def _rise_document(rise: Rise) -> dict[str, object]:
    return {
        "position": rise.position,
        "loss": finite(rise.beyond),
        "loss_within_trained": finite(rise.within),
        "standard_error": finite(rise.error),
        "rises": rise.beyond_chance,
    }


def print_lengths(result: LengthsResult) -> None:
    """The table, a bar of the reference's loss in every row, and the verdict."""
    out = console()
    passages = "passage" if result.passages == 1 else "passages"
    out.print(Text(f"{result.spec_name}: loss by position, in nats a token", style="bold"))
    out.print(f"  reference  {result.reference_version}, fp32, eager attention{_pace(result.chunks['reference'])}")
    out.print(f"  port       {printable(result.port_name)}, fp32{_pace(result.chunks['port'])}")
    out.print(
        f"  text       {printable(result.text.name)}, {result.passages} {passages} of {result.length:,} tokens, "
        f"sha256 {result.text.sha256[:12]}"
    )
    out.print("")
    _print_table(result, out)
    out.print("")
    notes = [*([] if result.rise is None else _rise_lines(result.rise)), *result.notes]
    for note in notes:
        out.print(f"  {note}")
    if notes:
        out.print("")
    verdict = ("PASS", "bold green") if result.passed else ("FAIL", "bold red")
    out.print(Text("  ").append(*verdict).append(f": {_reason(result)}"))


def _print_table(result: LengthsResult, out: Console) -> None:
    """A row for every bucket, and one for whatever begins there; `within` only where the trained length is passed."""
    wide = result.rise is not None
    middle = "  (within)" if wide else ""
    head = f"  {'positions':>15}  {'tokens':>6}  {'reference':>9}{middle}  {'port':>9}  {'× floor':>8}"
    out.print(Text(head, style="bold"))
    highest = max((bucket.reference for bucket in result.buckets if math.isfinite(bucket.reference)), default=1.0)
    for bucket in result.buckets:
        names = ", ".join(mark.name for mark in result.marks if mark.position == bucket.start)
        if names:
            out.print(Text(f"  {bucket.start:>7,} ─ {names}", style="cyan"))
        within = "" if bucket.within is None else f"({_loss(bucket.within)})"
        line = Text(f"  {_span(bucket):>15}  {bucket.tokens:>6,}  {_loss(bucket.reference):>9}")
        line.append(f"  {within:>8}" if wide else "")
        line.append(f"  {_loss(bucket.port):>9}  {figure(bucket.times_floor):>8}  ")
        line.append(*(("pass", "green") if bucket.passed else ("FAIL", "bold red")))
        line.append(f"  {_bar(bucket.reference / highest)}")
        out.print(line)


def _pace(chunk: int | None) -> str:
    return ", one full pass" if chunk is None else f", {chunk} tokens at a time"


def _rise_lines(rise: Rise) -> list[str]:
    from archc.validation.lengths import CHANCE

    word = "rises" if rise.beyond_chance else "does not rise beyond chance"
    return [
        f"past the trained length the reference's loss {word}: {rise.beyond:.3f} from position {rise.position:,} on,",
        f"and {rise.within:.3f} on the same tokens with no more than {rise.position:,} positions (within): "
        f"{rise.beyond - rise.within:+.3f} ± {CHANCE * rise.error:.3f}",
    ]


def _reason(result: LengthsResult) -> str:
    from archc.validation.parity import BOUND

    most = figure(max(bucket.times_floor for bucket in result.buckets))
    if result.departure is None:
        return f"the port keeps to the reference at every length: at most {most} times the noise floor, bound {BOUND:g}"
    mark = result.departure_mark
    where = f" (where the {mark.name}, at {mark.position:,})" if mark is not None else ""
    return (
        f"the port leaves the reference from position {result.departure:,} on{where}, "
        f"by up to {most} times the noise floor; the bound is {BOUND:g}"
    )


def _span(bucket: Bucket) -> str:
    return f"{bucket.start:,}–{bucket.end - 1:,}" if bucket.end - bucket.start > 1 else f"{bucket.start:,}"


def _loss(loss: float) -> str:
    return f"{loss:.4f}" if math.isfinite(loss) else "∞"


def _bar(share: float) -> str:
    if not math.isfinite(share):
        return ""
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
