"""afmoe: gated attention in a sandwich of norms, experts (transformers 5.24, models/afmoe/modeling_afmoe.py)."""

from archc.families import llama
from archc.families.base import Family, Module, Parameter, Table
from archc.families.common import (
    EMPTY_SHARED,
    SINGLE_EXPERTS,
    exact_scale,
    gated,
    moe,
    rope_where_sliding,
    shared_experts,
    shared_ffn,
    window,
    without,
)

GATE = (Module("model.layers.N.self_attn.gate_proj", ("layers.N.attention.gate",)),)
SANDWICH_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.pre_mlp_layernorm", ("layers.N.ffn_norm",)),
    Module("model.layers.N.post_mlp_layernorm", ("layers.N.ffn_post_norm",)),
)
# The router and what it adds for the choice, under names of their own.
ROUTER_MODULES = (
    Module("model.layers.N.mlp.router.gate", ("layers.N.ffn.router",)),
    Parameter("model.layers.N.mlp.expert_bias", ("layers.N.ffn.correction",)),
)

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
    **exact_scale(lambda c: "sqrt(hidden_size)" if c.mup_enabled else None),
    "norm.placement": "sandwich",
    "position": rope_where_sliding,
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "attention.gate.over": "element",
    "ffn": lambda c: EXPERTS if c.layer >= c.num_dense_layers else gated(),
}

FAMILY = Family(
    "afmoe",
    llama.ENDS
    + llama.ATTENTION
    + llama.QK_NORM
    + GATE
    + SANDWICH_NORMS
    + llama.GATED_FFN
    + ROUTER_MODULES
    + SINGLE_EXPERTS
    + shared_ffn("mlp.shared_experts"),
    empty=EMPTY_SHARED,
    tier="mixture",
    config=CONFIG,
)
