"""hy_v4: chosen keys and a gated output between several streams (transformers 5.24, models/hy_v4/modeling_hy_v4.py)."""

from archc.families import glm_moe_dsa
from archc.families.base import Family, Key, Table
from archc.families.common import rope
from archc.families.deepseek_v3 import DENSE, EXPERTS

_EXPERTS: Table = {**EXPERTS, "glu": {"limit": Key("swiglu_limit")}}
CONFIG: Table = {
    **glm_moe_dsa.CONFIG,
    "streams": {
        "kind": "hyper_connections",
        "count": Key("hc_mult"),
        "mixing": "none",
        "eps": Key("hc_eps"),
        "write_scale": Key("hc_magnitude"),
        "write_eps": True,
    },
    "undeclared": ("the head is stored and computed in float32",),
    "position": rope,
    "attention.indexer": {
        **glm_moe_dsa.INDEXER,
        "key_norm": {"kind": "layernorm", "bias": True},
        "rotates": "last",
    },
    "attention.sinks": "column",
    "attention.gate": {"over": "element"},
    "ffn": lambda c: _EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else DENSE,
}

FAMILY = Family("hy_v4", tier="latent", config=CONFIG)
