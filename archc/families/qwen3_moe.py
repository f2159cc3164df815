"""qwen3_moe: qwen3 with experts, stored one by one (transformers 5.24, models/qwen3_moe/modeling_qwen3_moe.py)."""

from typing import Any

from archc.families import qwen3
from archc.families.base import Family, Key, Table
from archc.families.common import ROUTED_EXPERTS, gated, moe, without


def has_experts(c: Any) -> bool:
    """Whether the layer in question has experts, and not a dense feed-forward."""
    return bool(c.layer not in c.mlp_only_layers and c.num_experts > 0 and (c.layer + 1) % c.decoder_sparse_step == 0)


def ffn(c: Any) -> Table:
    """The section `ffn` of the layer in question."""
    if not has_experts(c):
        return gated()
    return moe({"score": "softmax", "renormalize": Key("norm_topk_prob")})


CONFIG: Table = {**without(qwen3.CONFIG, "ffn"), "attention.window": Key("sliding_window"), "ffn": ffn}

FAMILY = Family("qwen3_moe", qwen3.FAMILY.rules + ROUTED_EXPERTS, tier="mixture", config=CONFIG, inverse=qwen3.INVERSE)
