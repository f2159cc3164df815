"""kolibri1: a sandwich of norms, experts chosen by logits (transformers 5.24, models/kolibri1/modeling_kolibri1.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import ROUTED_EXPERTS, moe, rope_where_windowed, shared_ffn, window, without

POST_NORMS = (
    Module("model.layers.N.post_attn_norm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.post_ffn_norm", ("layers.N.ffn_post_norm",)),
)
CORRECTION = (Parameter("model.layers.N.moe.router.expert_bias", ("layers.N.ffn.correction",)),)

ROUTER: Table = {
    "score": "sigmoid",
    "order": "top_k_then_score",
    "correction": "buffer",
    "renormalize": Key("norm_topk_prob"),
    "float32": True,
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

FAMILY = Family(
    "kolibri1",
    llama.ENDS
    + llama.ATTENTION
    + llama.QK_NORM
    + llama.PRE_NORMS
    + POST_NORMS
    + ROUTED_EXPERTS
    + CORRECTION
    + shared_ffn("mlp.shared_experts"),
    tier="mixture",
    config=CONFIG,
)
