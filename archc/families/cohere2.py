"""cohere2: cohere with windows, and no positions without one (transformers 5.24, models/cohere2)."""

from archc.families import cohere
from archc.families.base import Family, Table
from archc.families.common import rope, window

CONFIG: Table = {
    **cohere.CONFIG,
    "position": lambda c: rope(c, pairing="interleaved", float32="turning") if window(c) else {"kind": "none"},
    "attention.window": window,
    "attention.qk_norm": None,
}

FAMILY = Family("cohere2", cohere.FAMILY.rules, tier="twisted", config=CONFIG)
