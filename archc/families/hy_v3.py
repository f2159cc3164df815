"""hy_v3: a norm per head, experts, a sum in fp32 (transformers 5.24, models/hy_v3/modeling_hy_v3.py)."""

from typing import Any

from archc.families import afmoe, llama, qwen3
from archc.families.base import Family, Key, Table
from archc.families.common import SINGLE_EXPERTS, gated, moe, shared_ffn, without

ROUTER: Table = {
    "score": "sigmoid",
    "correction": "buffer",
    "renormalize": True,
    "renormalize_eps": 1e-20,
    "scale": Key("router_scaling_factor"),
    "float32": True,
}


def shared(c: Any) -> Table:
    """The shared experts, with the biases of dense feed-forwards, whose width they have where there are none."""
    width = c.num_shared_experts * c.moe_intermediate_size
    return {"width": width or Key("intermediate_size"), "bias": Key("mlp_bias")}


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "attention.qk_norm.over": "head",
    "ffn": lambda c: (
        moe(ROUTER, shared=shared) if c.mlp_layer_types[c.layer] == "sparse" else gated(bias=Key("mlp_bias"))
    ),
}

FAMILY = Family(
    "hy_v3",
    qwen3.FAMILY.rules + afmoe.ROUTER_MODULES + SINGLE_EXPERTS + shared_ffn("mlp.shared_mlp"),
    extra_layers=True,
    tier="mixture",
    config=CONFIG,
)
