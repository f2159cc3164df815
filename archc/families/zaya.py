"""zaya: convolved queries and keys, experts behind a router of several layers (transformers 5.24, models/zaya)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import moe, partial_rope, without


def _network(c: Any) -> dict[str, Source]:
    return {"width": Key("router_hidden_size"), "carried": c.layer > 0}


_EXPERTS = moe(
    {"score": "softmax", "correction": "buffer", "renormalize": False, "network": _network},
    identity={"count": 1, "returns": "zero"},
)
CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "embedding.affine": True,
    "logits.bias": Key("lm_head_bias"),
    "position": lambda c: partial_rope(c, c.layer_types[c.layer]),
    "attention.kind": "convolved",
    "attention.heads": Key("num_attention_heads"),
    "attention.kv_heads": Key("num_key_value_heads"),
    "attention.head_dim": Key("head_dim"),
    "attention.channel_kernel": Key("cca_time0"),
    "attention.head_kernel": Key("cca_time1"),
    "attention.bias": Key("attention_bias"),
    "attention.window": lambda c: c.sliding_window if c.layer_types[c.layer] == "hybrid_sliding" else None,
    "ffn": _EXPERTS,
    "residual.learned": "both",
    "residual.float32": True,
}

FAMILY = Family("zaya", tier="exotic", config=CONFIG)
