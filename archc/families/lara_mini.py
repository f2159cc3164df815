"""lara_mini: gated delta nets, sliding and full attention, experts (transformers 5.24, models/lara_mini)."""

from typing import Any

from archc.families import bamba, llama, qwen3_next
from archc.families.base import Family, Key, Table
from archc.families.common import moe, rope_where_sliding, window, without

ATTENTION: Table = {**bamba.ATTENTION, "window": window, "qk_norm": {"over": "head"}}


def recurrent(c: Any) -> bool:
    """Whether the layer in question has a delta net, and not attention."""
    return bool(c.layer_types[c.layer] == "linear_attention")


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": rope_where_sliding,
    "attention": lambda c: None if recurrent(c) else ATTENTION,
    "mixer": lambda c: qwen3_next.MIXER if recurrent(c) else None,
    "ffn": moe(
        {"score": "softmax", "renormalize": Key("norm_topk_prob"), "float32": True},
        shared={"width": Key("shared_expert_intermediate_size")},
    ),
}

FAMILY = Family("lara_mini", tier="hybrid", config=CONFIG)
