"""flint: sinks, no rope on full layers, experts (transformers 5.24, models/flint/modeling_flint.py)."""

from typing import Any

from archc.families import qwen3, qwen3_moe
from archc.families.base import Family, Key, Table
from archc.families.common import gated, moe, rope_where_sliding, without

EXPERTS = moe(
    {"score": "sigmoid", "renormalize": Key("norm_topk_prob")},
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

FAMILY = Family("flint", config=CONFIG)
