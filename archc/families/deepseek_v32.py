"""deepseek_v32: deepseek_v3 behind an indexer (transformers 5.24, models/deepseek_v32/modeling_deepseek_v32.py)."""

from archc.families import glm4_moe_lite
from archc.families.base import Family, Key, Table
from archc.families.common import rope

INDEXER: Table = {
    "top_k": Key("index_topk"),
    "heads": Key("index_n_heads"),
    "head_dim": Key("index_head_dim"),
    "key_norm": {"kind": "layernorm", "bias": True, "eps": 1e-6},
}
CONFIG: Table = {
    **glm4_moe_lite.CONFIG,
    "position": lambda c: rope(c, pairing="interleaved"),
    "attention.indexer": {**INDEXER, "pairing": "half"},
}

FAMILY = Family("deepseek_v32", tier="latent", config=CONFIG)
