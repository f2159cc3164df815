"""smollm3: llama, some layers without positions (transformers 5.24, models/smollm3/modeling_smollm3.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import head_dim, rope, window

CONFIG: Table = {
    **llama.CONFIG,
    "position": lambda c: rope(c) if c.no_rope_layers[c.layer] else {"kind": "none"},
    "attention.head_dim": head_dim,
    "attention.window": window,
}

FAMILY = Family("smollm3", llama.FAMILY.rules, tier="dense", config=CONFIG)
