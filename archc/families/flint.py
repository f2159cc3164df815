"""flint: sinks, no rope on full layers, experts (transformers 5.24, models/flint/modeling_flint.py)."""

from typing import Any

from archc.families import qwen3, qwen3_moe
from archc.families.base import Family, Key, Parameter, Table
from archc.families.common import ROUTED_EXPERTS, gated, moe, rope_where_sliding, shared_ffn, without

SINKS = (Parameter("model.layers.N.self_attn.softmax_offset", ("layers.N.attention.sinks",)),)

EXPERTS = moe(
    {"score": "sigmoid", "renormalize": Key("norm_topk_prob"), "float32": True},
    shared={"width": Key("shared_expert_intermediate_size")},
)


def ffn(c: Any) -> Table:
    """The section `ffn` of the layer in question."""
    return EXPERTS if qwen3_moe.has_experts(c) else gated()


CONFIG: Table = {
    **without(qwen3.CONFIG, "ffn"),
    "position": rope_where_sliding,
    "attention.sinks": "column",
    "ffn": ffn,
}

FAMILY = Family(
    "flint",
    qwen3.FAMILY.rules + SINKS + ROUTED_EXPERTS + shared_ffn("mlp.shared_expert"),
    tier="mixture",
    config=CONFIG,
)
