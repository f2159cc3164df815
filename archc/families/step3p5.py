"""step3p5: heads by kind of layer, each behind a gate, and experts (transformers 5.24,
models/step3p7/modeling_step3p7.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import activation, partial_rope, sliding, window, without


def _limited(c: Any, key: str) -> dict[str, object] | None:
    """What an entry of the list `key` limits; 0 and null limit nothing."""
    limits = getattr(c, key)
    limit = limits[c.layer] if limits else None
    return {"limit": float(limit), "limited": "after_activation"} if limit else None


def _ffn(c: Any) -> Table:
    section: dict[str, Any] = {"activation": activation("hidden_act")}
    if c.mlp_layer_types[c.layer] != "sparse":
        width, bias = Key("intermediate_size"), Key("mlp_bias")
        return {"kind": "gated", **section, "width": width, "bias": bias, "glu": _limited(c, "swiglu_limits_shared")}
    return {
        "kind": "moe",
        **section,
        "experts": Key("n_routed_experts"),
        "top_k": Key("num_experts_per_tok"),
        "width": Key("moe_intermediate_size"),
        "glu": _limited(c, "swiglu_limits"),
        "router": {
            "score": "sigmoid",
            "correction": "buffer",
            "renormalize": True,
            "scale": Key("moe_router_scaling_factor"),
        },
        "shared": {
            "width": Key("share_expert_dim"),
            "bias": Key("mlp_bias"),
            "glu": _limited(c, "swiglu_limits_shared"),
        },
    }


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.weight": "one_plus",
    "position": lambda c: partial_rope(c, c.layer_types[c.layer]),
    "attention.heads": lambda c: (
        c.num_sliding_attention_heads if sliding(c) else c.per_layer_config[c.layer].num_attention_heads
    ),
    "attention.scale": lambda c: c.query_pre_attn_scalar**-0.5,
    "attention.window": window,
    "attention.qk_norm.over": "head",
    "attention.gate.over": lambda c: "head" if c.gating is True or c.gating == "per-head" else "element",
    "ffn": _ffn,
    "undeclared": lambda c: ["queries see later positions too"] if c.use_bidirectional_attention else None,
}

FAMILY = Family("step3p5", tier="mixture", config=CONFIG)
