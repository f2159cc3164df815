"""helium: llama with neighbours as pairs (transformers 5.24, models/helium/modeling_helium.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Table
from archc.families.common import qkvo, rope


def _head_dim(c: Any) -> int:
    found: int = c.head_dim
    if found * c.num_attention_heads != c.hidden_size:
        raise ValueError("its output projection is hidden_size × hidden_size, so head_dim × heads must be hidden_size")
    return found


CONFIG: Table = {
    **llama.CONFIG,
    "position": lambda c: rope(c, pairing="interleaved"),
    "attention.head_dim": _head_dim,
    "attention.bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, False),
}

INVERSE: Inverse = {
    "head_dim": lambda o: o.first("attention.head_dim"),
    "num_attention_heads": lambda o: o.first("attention.heads"),
}

FAMILY = Family("helium", llama.FAMILY.rules, tier="dense", config=CONFIG, inverse=INVERSE)
