"""afmoe: gated attention in a sandwich of norms, experts (transformers 5.24, models/afmoe/modeling_afmoe.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import gated, moe, rope_where_sliding, shared_experts, window, without

ROUTER: Table = {
    "score": "sigmoid",
    "correction": "parameter",
    "renormalize": True,
    "renormalize_eps": 1e-20,
    "scale": lambda c: float(c.route_scale),
}
EXPERTS = moe(ROUTER, shared=shared_experts("num_shared_experts"))
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "embedding.scale": lambda c: "sqrt(hidden_size)" if c.mup_enabled else None,
    "norm.placement": "sandwich",
    "position": rope_where_sliding,
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "attention.gate.over": "element",
    "ffn": lambda c: EXPERTS if c.layer >= c.num_dense_layers else gated(),
}

FAMILY = Family("afmoe", config=CONFIG)
