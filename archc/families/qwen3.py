"""qwen3: llama with a norm on queries and keys (transformers 5.24, models/qwen3/modeling_qwen3.py)."""

from archc.families import llama
from archc.families.base import Family, Inverse, Table
from archc.families.common import head_dim, window

CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": head_dim,
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "ffn.bias": False,
}

INVERSE: Inverse = {"head_dim": lambda o: o.first("attention.head_dim")}

FAMILY = Family("qwen3", llama.FAMILY.rules + llama.QK_NORM, tier="dense", config=CONFIG, inverse=INVERSE)
