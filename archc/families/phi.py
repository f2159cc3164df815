"""phi: both branches behind one norm, everything biased (transformers 5.24, models/phi/modeling_phi.py)."""

from archc.families import persimmon
from archc.families.base import Family, Key, Table
from archc.families.common import head_dim

CONFIG: Table = {
    **persimmon.CONFIG,
    "norm.placement": "parallel",
    "attention.kv_heads": Key("num_key_value_heads"),
    "attention.head_dim": head_dim,
    "logits.bias": True,
}

FAMILY = Family("phi", config=CONFIG)
