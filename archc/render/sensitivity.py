"""The table of what mistakes cost, for people and for machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from archc.render.terminal import console

if TYPE_CHECKING:
    from archc.validation.sensitivity import Cost, Row, Sensitivity

_WIDEST = 44
_WORDS = {
    "killed": ("seen", "green"),
    "loud": ("loud", "green"),
    "equivalent": ("none", ""),
    "survived": ("MISSED", "bold red"),
}


def sensitivity_document(found: Sensitivity, name: str) -> dict[str, object]:
    """The sensitivity JSON. Numbers that are not finite become null."""
    return {
        "spec": name,
        "reference": {"kind": "transformers", "version": found.reference_version, "dtype": "float32"},
        "text": {"name": found.tokens.name, "sha256": found.tokens.sha256, "tokens": len(found.tokens.ids)},
        "loss": found.loss,
        "faults": [
            {
                "fault": row.mutant.fault.id,
                "name": row.mutant.name,
                "field": row.mutant.fault.field,
                "kind": row.mutant.fault.kind,
                "declared": row.mutant.slip.declared,
                "behaves_as": row.mutant.slip.behaves_as,
                "silent": row.gate != "loud",
                "gate": row.gate,
                "probe": row.probe or None,
                "why": row.why or None,
                **_cost_document(row.cost, found.loss),
            }
            for row in found.rows
        ],
        "controls": [{"change": one.name, **_cost_document(one.cost, found.loss)} for one in found.controls],
    }


def _cost_document(cost: Cost | None, loss: float) -> dict[str, float | None]:
    keys = ("loss", "loss_change", "kl", "top1", "max_abs", "times_floor")
    if cost is None:
        return dict.fromkeys(keys)
    off = cost.deviation
    values = (cost.loss, cost.loss / loss - 1, off.kl, off.top1, off.max_abs, cost.times_floor)
    return {key: value if math.isfinite(value) else None for key, value in zip(keys, values, strict=True)}


def print_sensitivity(found: Sensitivity, name: str) -> None:
    """The table, costliest first, and what the gate would not have seen."""
    out = console()
    out.print(Text(f"{name}: what each mistake would cost", style="bold"))
    out.print(f"  reference  {found.reference_version}, fp32, eager attention")
    tokens = found.tokens
    out.print(
        f"  text       {tokens.name} ({len(tokens.ids)} tokens, sha256 {tokens.sha256[:12]}), loss {found.loss:.4f}"
    )
    out.print("")
    head = f"  {'mistake':<{_WIDEST}} {'loss':>7}  {'change':>8}  {'KL':>7}  {'top-1':>5}  {'× floor':>9}  gate"
    out.print(Text(head, style="bold"))
    for row in sorted(found.rows, key=_order):
        line = Text(f"  {_cut(row.mutant.name):<{_WIDEST}} {_figures(row.cost, found.loss)}  ")
        line.append(*_WORDS[row.gate])
        if row.gate != "killed":
            line.append(f"  {row.why or row.probe}".rstrip())
        out.print(line)
    for one in found.controls:
        out.print(f"  {one.name:<{_WIDEST}} {_figures(one.cost, found.loss)}  no mistake")
    seen = sum(row.gate in {"killed", "loud"} for row in found.rows)
    none = sum(row.gate == "equivalent" for row in found.rows)
    loud = sum(row.gate == "loud" for row in found.rows)
    out.print("")
    out.print(
        f"  {seen} of {len(found.rows) - none} mistakes would be seen by `archc validate`; "
        f"{loud} of them {'raises' if loud == 1 else 'raise'} when weights are loaded, the others are silent"
    )


def _order(row: Row) -> tuple[bool, float]:
    return row.cost is None, -(row.cost.loss if row.cost else 0.0)


def _figures(cost: Cost | None, loss: float) -> str:
    if cost is None:
        return f"{'–':>7}  {'–':>8}  {'–':>7}  {'–':>5}  {'–':>9}"
    change = cost.loss / loss - 1
    times = f"{cost.times_floor:>9,.0f}" if cost.times_floor >= 100 else f"{cost.times_floor:>9.2f}"
    return f"{cost.loss:>7.3f}  {change:>+8.2%}  {cost.deviation.kl:>7.4f}  {cost.deviation.top1:>5.0%}  {times}"


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
