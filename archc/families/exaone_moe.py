"""exaone_moe: no rope on full layers, experts (transformers 5.24, models/exaone_moe/modeling_exaone_moe.py)."""

from typing import Any

from archc.families import deepseek_v3, qwen3
from archc.families.base import Family, Table
from archc.families.common import gated, moe, rope, rope_where_sliding, shared_experts, without

EXPERTS = moe(deepseek_v3.ROUTER, shared=shared_experts("num_shared_experts"))


def position(c: Any) -> dict[str, Any]:
    """Heads turn on sliding layers, and everywhere where there is no window."""
    return rope(c) if c.sliding_window is None else rope_where_sliding(c)


CONFIG: Table = {
    **without(qwen3.CONFIG, "ffn"),
    "position": position,
    "attention.bias": "none",
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(),
}

FAMILY = Family("exaone_moe", config=CONFIG)
