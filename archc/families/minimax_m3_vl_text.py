"""minimax_m3_vl_text: chosen blocks of keys, and experts beside a shared one (transformers 5.24, models/minimax_m3_vl).

The class turns the share of a head that `rope_parameters` state; the config's `rotary_dim` is not read.
"""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import partial_rope, without

_NORM: Table = {"weight": "one_plus"}
_GLU: Table = {"limit": Key("swiglu_limit"), "slope": Key("swiglu_alpha"), "up_shift": 1.0}
_INDEXER: Table = {
    "top_k": Key("index_topk_blocks"),
    "heads": Key("index_n_heads"),
    "head_dim": Key("index_head_dim"),
    "score": "product",
    "key_norm": _NORM,
    "query_norm": _NORM,
    "block": Key("index_block_size"),
    "local_blocks": Key("index_local_blocks"),
}


def _ffn(c: Any) -> dict[str, Source]:
    if c.mlp_layer_types[c.layer] != "sparse":
        return {"kind": "gated", "activation": "silu", "width": Key("dense_intermediate_size"), "glu": _GLU}
    return {
        "kind": "moe",
        "experts": Key("num_local_experts"),
        "top_k": Key("num_experts_per_tok"),
        "width": Key("intermediate_size"),
        "activation": "silu",
        "glu": _GLU,
        "router": {
            "score": "sigmoid",
            "correction": "buffer",
            "renormalize": True,
            "scale": lambda c: float(c.routed_scaling_factor),
        },
        "shared": {"width": Key("shared_intermediate_size"), "glu": _GLU},
    }


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.weight": "one_plus",
    "position": partial_rope,
    "attention.bias": "none",
    "attention.qk_norm.over": "head",
    "attention.indexer": lambda c: _INDEXER if c.layer_types[c.layer] == "minimax_m3_sparse" else None,
    "ffn": _ffn,
}

FAMILY = Family("minimax_m3_vl_text", tier="latent", config=CONFIG)
