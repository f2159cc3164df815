"""exaone_moe: no rope on full layers, experts (transformers 5.24, models/exaone_moe/modeling_exaone_moe.py)."""

from archc.families import deepseek_v3, qwen3
from archc.families.base import Family, Parameter, Table
from archc.families.common import (
    EMPTY_SHARED,
    ROUTED_EXPERTS,
    gated,
    moe,
    rope_where_windowed,
    shared_experts,
    shared_ffn,
    without,
)

CORRECTION = (Parameter("model.layers.N.mlp.e_score_correction_bias", ("layers.N.ffn.correction",)),)

EXPERTS = moe(deepseek_v3.ROUTER, shared=shared_experts("num_shared_experts"))


CONFIG: Table = {
    **without(qwen3.CONFIG, "ffn"),
    "position": rope_where_windowed,
    "attention.bias": "none",
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(),
}

FAMILY = Family(
    "exaone_moe",
    qwen3.FAMILY.rules + ROUTED_EXPERTS + CORRECTION + shared_ffn("mlp.shared_experts"),
    ignored=("mtp.",),
    empty=EMPTY_SHARED,
    tier="mixture",
    config=CONFIG,
)
