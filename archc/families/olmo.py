"""olmo: layer norms that store nothing (transformers 5.24, models/olmo/modeling_olmo.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import head_dim, rope

CONFIG: Table = {
    **llama.CONFIG,
    "norm.kind": "layernorm",
    "norm.eps": 1e-5,
    "norm.weight": "none",
    "position": lambda c: rope(c, float32="all"),
    "attention.head_dim": head_dim,
    "attention.clip": Key("clip_qkv"),
    "ffn.bias": False,
}

FAMILY = Family("olmo", llama.FAMILY.rules, tier="dense", config=CONFIG)
