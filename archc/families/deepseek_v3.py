"""deepseek_v3: latent attention and grouped experts (transformers 5.24, models/deepseek_v3/modeling_deepseek_v3.py)."""

from math import log
from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Module, Source, Table
from archc.families.common import (
    CORRECTION,
    EMPTY_SHARED,
    ROUTED_EXPERTS,
    activation,
    rope,
    shared_experts,
    shared_ffn,
    switch,
    without,
)

LATENT_ATTENTION = (
    Module("model.layers.N.self_attn.q_proj", ("layers.N.attention.q",)),
    Module("model.layers.N.self_attn.q_a_proj", ("layers.N.attention.q_down",)),
    Module("model.layers.N.self_attn.q_a_layernorm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.self_attn.q_b_proj", ("layers.N.attention.q_up",)),
    Module("model.layers.N.self_attn.kv_a_proj_with_mqa", ("layers.N.attention.kv_down",)),
    Module("model.layers.N.self_attn.kv_a_layernorm", ("layers.N.attention.kv_norm",)),
    Module("model.layers.N.self_attn.kv_b_proj", ("layers.N.attention.kv_up",)),
    Module("model.layers.N.self_attn.o_proj", ("layers.N.attention.o",)),
)
MIXTURE = ROUTED_EXPERTS + CORRECTION + shared_ffn("mlp.shared_experts")
RULES = llama.ENDS + LATENT_ATTENTION + llama.PRE_NORMS + llama.GATED_FFN + MIXTURE


def pairing(c: Any) -> str:
    """Which rotary channels turn together, by the switch that these configs have."""
    return "interleaved" if c.rope_interleave else "half"


def latent_bias(c: Any) -> list[str] | None:
    """The biases that `attention_bias` switches on: those of what reads or writes the residual stream."""
    if not c.attention_bias:
        return None
    return [*(["q_down"] if c.q_lora_rank is not None else []), "kv_down", "o"]


def groups(c: Any) -> dict[str, Source] | None:
    """The groups of experts; one group is none."""
    if c.n_group == 1:
        return None
    return {"count": Key("n_group"), "chosen": Key("topk_group"), "score": "top2_sum"}


ROUTER: Table = {
    "score": "sigmoid",
    "correction": "buffer",
    "groups": groups,
    "renormalize": switch("norm_topk_prob"),
    "renormalize_eps": lambda c: 1e-20 if c.norm_topk_prob else None,
    "scale": lambda c: float(c.routed_scaling_factor),
    "float32": True,
}
EXPERTS: Table = {
    "kind": "moe",
    "experts": Key("n_routed_experts"),
    "top_k": Key("num_experts_per_tok"),
    "width": Key("moe_intermediate_size"),
    "activation": activation("hidden_act"),
    "router": ROUTER,
    "shared": shared_experts("n_shared_experts"),
}
DENSE: Table = {"kind": "gated", "activation": activation("hidden_act"), "width": Key("intermediate_size")}


def sparse_by_type(c: Any) -> Table:
    """The feed-forward of a layer, by `mlp_layer_types`."""
    return EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else DENSE


def scale(c: Any) -> float | None:
    """The scale of scores, where scalings other than yarn state mscale_all_dim, as these classes use it too."""
    kind, mscale = c.rope().get("rope_type"), c.rope().get("mscale_all_dim")
    if not mscale or kind in ("default", "yarn"):
        return None
    temperature = 0.1 * float(mscale) * log(max(c.rope()["factor"], 1)) + 1
    found: float = temperature**2 * (c.qk_nope_head_dim + c.qk_rope_head_dim) ** -0.5
    return found


LATENT: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": lambda c: rope(c, pairing=pairing),
    "attention.kind": "mla",
    "attention.heads": Key("num_attention_heads"),
    "attention.q_rank": Key("q_lora_rank"),
    "attention.kv_rank": Key("kv_lora_rank"),
    "attention.nope_dim": Key("qk_nope_head_dim"),
    "attention.rope_dim": Key("qk_rope_head_dim"),
    "attention.value_dim": Key("v_head_dim"),
    "attention.bias": latent_bias,
    "attention.scale": scale,
    "attention.latent_norm.eps": lambda c: None if c.rms_norm_eps == 1e-6 else 1e-6,
}
"""Everything but the feed-forward. The norms of latents have an eps of their own, which is the default of the class."""
CONFIG: Table = {**LATENT, "ffn": lambda c: EXPERTS if c.layer >= c.first_k_dense_replace else DENSE}

FAMILY = Family("deepseek_v3", RULES, empty=EMPTY_SHARED, extra_layers=True, tier="latent", config=CONFIG)
