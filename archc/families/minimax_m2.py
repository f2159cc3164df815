"""minimax_m2: partial rope, a norm over all heads, experts (transformers 5.24, models/minimax_m2)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import moe, partial_rope, without

ROUTER: Table = {"score": "sigmoid", "correction": "buffer", "renormalize": True}
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": partial_rope,
    "attention.bias": "none",
    "attention.qk_norm.over": "width",
    "ffn": moe(ROUTER, experts=Key("num_local_experts"), width=Key("intermediate_size")),
}

FAMILY = Family("minimax_m2", config=CONFIG)
