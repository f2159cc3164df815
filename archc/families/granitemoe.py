"""granitemoe: granite with experts (transformers 5.24, models/granitemoe/modeling_granitemoe.py)."""

from archc.families import granite
from archc.families.base import Family, Key, Table
from archc.families.common import moe, without

EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
)
CONFIG: Table = {**without(granite.CONFIG, "ffn"), "ffn": EXPERTS}

FAMILY = Family("granitemoe", config=CONFIG)
