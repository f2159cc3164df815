"""deepseek_v4: compressed attention between several streams (transformers 5.24, models/deepseek_v4)."""

from typing import Any

from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import activation, partial_rope, without
from archc.families.deepseek_v3 import EXPERTS, LATENT

_OVERLAPPING = "compressed_sparse_attention"


def _position(c: Any) -> dict[str, Any]:
    kind = "main" if c.layer_types[c.layer] == "sliding_attention" else "compress"
    return partial_rope(c, kind, pairing="interleaved", float32="turning")


def _compression(c: Any) -> dict[str, Source] | None:
    kind = c.layer_types[c.layer]
    if kind == "sliding_attention":
        return None
    indexer = {"top_k": Key("index_topk"), "heads": Key("index_n_heads"), "head_dim": Key("index_head_dim")}
    found: dict[str, Source] = {"rate": lambda c: c.compress_rates[kind]}
    if kind == _OVERLAPPING:
        found |= {"overlap": True, "indexer": indexer}
    return found


def _score(c: Any) -> str:
    name: str = c.scoring_func
    return {"sqrtsoftplus": "sqrt_softplus"}.get(name, name)


def _router(c: Any) -> dict[str, Source]:
    table = c.mlp_layer_types[c.layer] == "hash_moe"
    return {
        "score": _score,
        **({"table": Key("vocab_size")} if table else {"correction": "buffer"}),
        "renormalize": True,
        "renormalize_eps": 1e-20,
        "scale": lambda c: float(c.routed_scaling_factor),
    }


_LIMIT: Table = {"limit": Key("swiglu_limit")}
CONFIG: Table = {
    **without(LATENT, "attention"),
    "streams": {
        "kind": "hyper_connections",
        "count": Key("hc_mult"),
        "mixing": "sinkhorn",
        "iterations": Key("hc_sinkhorn_iters"),
        "eps": Key("hc_eps"),
    },
    "position": _position,
    "attention.kind": "compressed",
    "attention.heads": Key("num_attention_heads"),
    "attention.head_dim": Key("head_dim"),
    "attention.q_rank": Key("q_lora_rank"),
    "attention.window": Key("sliding_window"),
    "attention.output_groups": Key("o_groups"),
    "attention.output_rank": Key("o_lora_rank"),
    "attention.query_norm": {"weight": "none"},
    "attention.sinks": "column",
    "attention.rotates": "last",
    "attention.compression": _compression,
    "ffn": {
        **EXPERTS,
        "activation": activation("hidden_act"),
        "glu": _LIMIT,
        "router": _router,
        "shared": {"width": Key("moe_intermediate_size"), "glu": _LIMIT, "bias": Key("mlp_bias")},
    },
}


def _layer_types(o: Any) -> list[str]:
    kinds = {None: "sliding_attention", True: _OVERLAPPING, False: "heavily_compressed_attention"}
    rates = zip(o.column("attention.compression.rate"), o.column("attention.compression.overlap"), strict=True)
    return [kinds[overlap if rate else None] for rate, overlap in rates]


def _rates(o: Any) -> dict[str, int]:
    named = zip(_layer_types(o), o.column("attention.compression.rate"), strict=True)
    return {kind: rate for kind, rate in named if rate}


INVERSE: Inverse = {"layer_types": _layer_types, "compress_rates": _rates}

FAMILY = Family("deepseek_v4", tier="latent", config=CONFIG, inverse=INVERSE)
