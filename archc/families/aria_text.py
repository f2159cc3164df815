"""aria_text: llama with experts and shared ones as one (transformers 5.24, models/aria/modeling_aria.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import moe, shared_experts, without


def shared(c: Any) -> Any:
    """The shared experts, the only ones that mlp_bias is for."""
    found = shared_experts("moe_num_shared_experts", "intermediate_size")(c)
    return found and {**found, "bias": Key("mlp_bias")}


EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False},
    experts=Key("moe_num_experts"),
    top_k=Key("moe_topk"),
    width=Key("intermediate_size"),
    shared=shared,
)
CONFIG: Table = {**without(llama.CONFIG, "ffn"), "ffn": EXPERTS}

FAMILY = Family("aria_text", config=CONFIG)
