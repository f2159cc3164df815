"""apertus: llama without a gate, activated by xIELU (transformers 5.24, models/apertus/modeling_apertus.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import head_dim

CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": head_dim,
    "attention.qk_norm.over": "head",
    "ffn.kind": "mlp",
    "ffn.bias": False,
}

FAMILY = Family("apertus", config=CONFIG)
