"""granite_swa: granite with windows, sinks, a rope base per layer (transformers 5.24, models/granite_swa)."""

from typing import Any

from archc.families import granite
from archc.families.base import Family, Table
from archc.families.common import SINKS, rope, window


def position(c: Any) -> dict[str, Any]:
    """Rotary positions with the base of the layer in question; a base of 0 is none."""
    base = c.layer_rope_theta[c.layer]
    return rope(c, base=float(base)) if base else {"kind": "none"}


CONFIG: Table = {
    **granite.CONFIG,
    "position": position,
    "attention.window": window,
    "attention.sinks": "sigmoid",
}

FAMILY = Family("granite_swa", granite.FAMILY.rules + SINKS, tier="twisted", config=CONFIG)
