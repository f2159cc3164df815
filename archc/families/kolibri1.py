"""kolibri1: a sandwich of norms, experts chosen by logits (transformers 5.24, models/kolibri1/modeling_kolibri1.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import moe, rope_where_windowed, window, without

ROUTER: Table = {
    "score": "sigmoid",
    "order": "top_k_then_score",
    "correction": "buffer",
    "renormalize": Key("norm_topk_prob"),
}
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.placement": "sandwich",
    "position": rope_where_windowed,
    "attention.bias": "none",
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "ffn": moe(ROUTER, experts=Key("num_local_experts"), shared={"width": Key("shared_expert_intermediate_size")}),
}

FAMILY = Family("kolibri1", config=CONFIG)
