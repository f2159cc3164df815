"""ernie4_5_moe: experts on some layers (transformers 5.24, models/ernie4_5_moe/modeling_ernie4_5_moe.py)."""

from itertools import pairwise
from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Parameter, Table
from archc.families.common import (
    ROUTED_EXPERTS,
    gated,
    head_dim,
    moe,
    qkvo,
    rope,
    shared_experts,
    shared_ffn,
    without,
)

CORRECTION = (
    Parameter("model.layers.N.mlp.moe_statics.e_score_correction_bias", ("layers.N.ffn.correction",), unit_axis=True),
)

ROUTER: Table = {
    "score": "softmax",
    "correction": "parameter",
    "renormalize": True,
    "renormalize_floor": Key("moe_norm_min"),
    "float32": True,
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
    "position": lambda c: rope(c, pairing="interleaved", float32="all"),
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

FAMILY = Family(
    "ernie4_5_moe",
    llama.FAMILY.rules + ROUTED_EXPERTS + CORRECTION + shared_ffn("mlp.shared_experts"),
    ignored=("model.mtp_emb_norm.", "model.mtp_hidden_norm.", "model.mtp_linear_proj.", "model.mtp_block."),
    tier="mixture",
    config=CONFIG,
    inverse=INVERSE,
)
