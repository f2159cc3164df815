"""mellum: a rope base per kind of layer, experts (transformers 5.24, models/mellum/modeling_mellum.py)."""

from archc.families import qwen3
from archc.families.base import Family, Key, Table
from archc.families.common import ROUTED_EXPERTS, gated, moe, partial_rope, without

EXPERTS = moe({"score": "softmax", "renormalize": Key("norm_topk_prob")}, experts=Key("num_local_experts"))
CONFIG: Table = {
    **without(qwen3.CONFIG, "ffn"),
    "position": lambda c: partial_rope(c, c.layer_types[c.layer]),
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(),
}

FAMILY = Family("mellum", qwen3.FAMILY.rules + ROUTED_EXPERTS, ignored=("mtp.",), tier="mixture", config=CONFIG)
