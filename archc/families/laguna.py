"""laguna: heads per layer, a softplus gate, experts (transformers 5.24, models/laguna/modeling_laguna.py)."""

from typing import Any

from archc.families import llama, qwen3
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import ROUTED_EXPERTS, factor, gated, moe, partial_rope, shared_ffn, window, without

GATE = (Module("model.layers.N.self_attn.g_proj", ("layers.N.attention.gate",)),)
CORRECTION = (Parameter("model.layers.N.mlp.experts.e_score_correction_bias", ("layers.N.ffn.correction",)),)

ROUTER: Table = {
    "score": "sigmoid",
    "correction": "parameter",
    "softcap": lambda c: c.moe_router_logit_softcapping or None,
    "renormalize": True,
    "scale": factor("moe_routed_scaling_factor"),
}
EXPERTS = moe(ROUTER, shared={"width": Key("shared_expert_intermediate_size")})


def gate(c: Any) -> Table:
    """A factor per head; one per channel where `gating` says anything else, false included."""
    return {"over": "head" if c.gating in (True, "per-head") else "element", "score": "softplus"}


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": lambda c: partial_rope(c, c.layer_types[c.layer]),
    "attention.heads": lambda c: c.num_attention_heads_per_layer[c.layer],
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "attention.gate": gate,
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(),
}

FAMILY = Family(
    "laguna",
    qwen3.FAMILY.rules + GATE + ROUTED_EXPERTS + CORRECTION + shared_ffn("mlp.shared_expert"),
    tier="mixture",
    config=CONFIG,
)
