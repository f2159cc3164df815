"""bailing_hybrid: kimi_linear with rotary positions and gates per head (transformers 5.24, models/bailing_hybrid)."""

from archc.families import jamba, kimi_linear
from archc.families.base import Family, Table
from archc.families.common import rope

MIXER: Table = {
    **kimi_linear.MIXER,
    "decay_floor": lambda c: float(c.kda_lower_bound) if c.kda_safe_gate else None,
}
ATTENTION: Table = {**kimi_linear.ATTENTION, "gate": {"over": "head"}}

CONFIG: Table = {
    **kimi_linear.CONFIG,
    "position": lambda c: rope(c, pairing="interleaved"),
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": lambda c: None if jamba.attends(c) else MIXER,
}

FAMILY = Family("bailing_hybrid", tier="hybrid", config=CONFIG)
