"""llama4_text: chunks, no rope on some layers, experts (transformers 5.24, models/llama4/modeling_llama4.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import gated, moe, rope, shared_ffn, without

DENSE = (
    Module("model.layers.N.feed_forward.gate_proj", ("layers.N.ffn.gate",)),
    Module("model.layers.N.feed_forward.up_proj", ("layers.N.ffn.up",)),
    Module("model.layers.N.feed_forward.down_proj", ("layers.N.ffn.down",)),
)
STACKED_EXPERTS = (
    Module("model.layers.N.feed_forward.router", ("layers.N.ffn.router",)),
    Parameter(
        "model.layers.N.feed_forward.experts.gate_up_proj",
        ("layers.N.ffn.gate", "layers.N.ffn.up"),
        transposed=True,
        stacked=True,
    ),
    Parameter("model.layers.N.feed_forward.experts.down_proj", ("layers.N.ffn.down",), transposed=True, stacked=True),
)

EXPERTS = moe(
    {"score": "sigmoid", "order": "top_k_then_score", "renormalize": False, "weighs": "input"},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
    shared={"width": Key("intermediate_size")},
)


def turns(c: Any) -> bool:
    """Whether heads turn on the layer in question: `no_rope_layers` is 1 where they do."""
    return bool(c.no_rope_layers[c.layer])


def query_scale(c: Any) -> Table | None:
    """Queries grow with their position where heads do not turn."""
    if turns(c) or not c.attn_temperature_tuning:
        return None
    return {
        "form": "steps",
        "strength": Key("attn_scale"),
        "length": Key("floor_scale"),
        "first": 1,
        "counts": "columns",
    }


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": lambda c: rope(c, pairing="interleaved", float32="all") if turns(c) else {"kind": "none"},
    "attention.chunk": lambda c: c.attention_chunk_size if c.layer_types[c.layer] == "chunked_attention" else None,
    "attention.qk_norm": lambda c: (
        {"over": "head", "order": "after_rope", "weight": "none"} if c.use_qk_norm and turns(c) else None
    ),
    "attention.query_scale": query_scale,
    "ffn": lambda c: EXPERTS if c.layer in c.moe_layers else gated("intermediate_size_mlp"),
}

FAMILY = Family(
    "llama4_text",
    llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + DENSE + STACKED_EXPERTS + shared_ffn("feed_forward.shared_expert"),
    tier="mixture",
    config=CONFIG,
    keeps_head=True,
)
