"""olmo2: norms on branch outputs only, and over all heads (transformers 5.24, models/olmo2/modeling_olmo2.py)."""

from archc.families import llama
from archc.families.base import Family, Module, Table
from archc.families.common import head_dim, rope

POST_NORMS = (
    Module("model.layers.N.post_attention_layernorm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.post_feedforward_layernorm", ("layers.N.ffn_post_norm",)),
)

CONFIG: Table = {
    **llama.CONFIG,
    "norm.placement": "post",
    "position": lambda c: rope(c, float32="all"),
    "attention.head_dim": head_dim,
    "attention.qk_norm.over": "width",
    "ffn.bias": False,
}

FAMILY = Family(
    "olmo2", llama.ENDS + llama.ATTENTION + llama.QK_NORM + POST_NORMS + llama.GATED_FFN, tier="twisted", config=CONFIG
)
