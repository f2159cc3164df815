"""qwen2: named as llama (transformers 5.24, models/qwen2/modeling_qwen2.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import head_dim, window

CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": head_dim,
    "attention.bias": ("q", "k", "v"),
    "attention.window": window,
    "ffn.bias": False,
}

FAMILY = Family("qwen2", llama.FAMILY.rules, ignored=llama.OLD_BUFFERS, tier="dense", config=CONFIG)
