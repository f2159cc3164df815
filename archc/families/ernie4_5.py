"""ernie4_5: llama with neighbours as pairs (transformers 5.24, models/ernie4_5/modeling_ernie4_5.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import qkvo, rope

CONFIG: Table = {
    **llama.CONFIG,
    "position": lambda c: rope(c, pairing="interleaved", float32="all"),
    "attention.bias": lambda c: qkvo(*[bool(c.use_bias)] * 4),
    "ffn.bias": lambda c: bool(c.use_bias),
}

FAMILY = Family("ernie4_5", llama.FAMILY.rules, tier="dense", config=CONFIG)
