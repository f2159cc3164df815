"""ernie4_5_moe: experts on some layers (transformers 5.24, models/ernie4_5_moe/modeling_ernie4_5_moe.py)."""

from itertools import pairwise
from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import gated, head_dim, moe, qkvo, rope, shared_experts, without

ROUTER: Table = {
    "score": "softmax",
    "correction": "parameter",
    "renormalize": True,
    "renormalize_floor": Key("moe_norm_min"),
}


def shared(c: Any) -> Any:
    """The shared experts, whose matrices have the biases of the dense feed-forwards."""
    found = shared_experts("moe_num_shared_experts")(c)
    return found and {**found, "bias": Key("use_bias")}


def ffn(c: Any) -> Table:
    """Every `moe_layer_interval`-th layer from the first to the last that may have experts."""
    inside = c.moe_layer_start_index <= c.layer <= c.moe_layer_end_index
    if inside and (c.layer + 1) % c.moe_layer_interval == 0:
        return moe(ROUTER, experts=Key("moe_num_experts"), top_k=Key("moe_k"), shared=shared)
    return gated(bias=Key("use_bias"))


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": lambda c: rope(c, pairing="interleaved"),
    "attention.head_dim": head_dim,
    "attention.bias": lambda c: qkvo(*[c.use_bias] * 4),
    "logits.bias": Key("use_bias"),
    "ffn": ffn,
}


def _sparse(o: Any) -> list[int]:
    return [layer for layer, kind in enumerate(o.column("ffn.kind")) if kind == "moe"]


INVERSE: Inverse = {
    "moe_layer_start_index": lambda o: min(_sparse(o), default=len(o.layers)),
    "moe_layer_end_index": lambda o: max(_sparse(o), default=len(o.layers)),
    "moe_layer_interval": lambda o: min((b - a for a, b in pairwise(_sparse(o))), default=1),
}

FAMILY = Family("ernie4_5_moe", config=CONFIG, inverse=INVERSE)
