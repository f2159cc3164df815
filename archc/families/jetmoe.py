"""jetmoe: experts for queries, outputs and feed-forwards (transformers 5.24, models/jetmoe/modeling_jetmoe.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import activation, block_with_eps, moe, without

ROUTER: Table = {"score": "softmax", "order": "top_k_then_score", "renormalize": False}
CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "block": block_with_eps(1e-6, "rms_norm_eps"),
    "attention": {
        "kind": "routed",
        "experts": Key("num_local_experts"),
        "top_k": Key("num_experts_per_tok"),
        "kv_heads": Key("num_key_value_heads"),
        "head_dim": Key("kv_channels"),
        "router": ROUTER,
        "bias": True,
    },
    "ffn": moe(
        ROUTER,
        experts=Key("num_local_experts"),
        width=Key("intermediate_size"),
        activation=activation("activation_function"),
        bias="sum",
    ),
}

FAMILY = Family("jetmoe", config=CONFIG)
