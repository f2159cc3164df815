"""laguna: heads per layer, a softplus gate, experts (transformers 5.24, models/laguna/modeling_laguna.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import factor, gated, moe, partial_rope, window, without

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

FAMILY = Family("laguna", config=CONFIG)
