"""qwen2_moe: qwen2 with experts and a gated shared one (transformers 5.24, models/qwen2_moe/modeling_qwen2_moe.py)."""

from typing import Any

from archc.families import qwen2, qwen3_moe
from archc.families.base import Family, Key, Module, Table
from archc.families.common import ROUTED_EXPERTS, gated, moe, qkvo, shared_ffn, without

GATED_SHARED = (
    *shared_ffn("mlp.shared_expert"),
    Module("model.layers.N.mlp.shared_expert_gate", ("layers.N.ffn.shared_gate",)),
)

EXPERTS = moe(
    {"score": "softmax", "renormalize": Key("norm_topk_prob")},
    shared={"width": Key("shared_expert_intermediate_size"), "gate": "sigmoid"},
)


def ffn(c: Any) -> Table:
    """The section `ffn` of the layer in question."""
    return EXPERTS if qwen3_moe.has_experts(c) else gated()


CONFIG: Table = {
    **without(qwen2.CONFIG, "ffn"),
    "attention.bias": lambda c: qkvo(c.qkv_bias, c.qkv_bias, c.qkv_bias, False),
    "ffn": ffn,
}

FAMILY = Family("qwen2_moe", qwen2.FAMILY.rules + ROUTED_EXPERTS + GATED_SHARED, tier="mixture", config=CONFIG)
