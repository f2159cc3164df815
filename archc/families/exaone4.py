"""exaone4: norms on branch outputs only, no positions on full layers (transformers 5.24, models/exaone4)."""

from archc.families import llama, olmo2
from archc.families.base import Family, Table
from archc.families.common import head_dim, rope_where_windowed, window

CONFIG: Table = {
    **llama.CONFIG,
    "norm.placement": "post",
    "position": rope_where_windowed,
    "attention.head_dim": head_dim,
    "attention.window": window,
    "attention.bias": "none",
    "attention.qk_norm.over": "head",
    "ffn.bias": False,
}

FAMILY = Family("exaone4", olmo2.FAMILY.rules, tier="twisted", config=CONFIG)
