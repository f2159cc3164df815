"""gemma2: norms on both sides of each branch (transformers 5.24, models/gemma2/modeling_gemma2.py)."""

from archc.families import llama
from archc.families.base import Family, Module

SANDWICH_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.pre_feedforward_layernorm", ("layers.N.ffn_norm",)),
    Module("model.layers.N.post_feedforward_layernorm", ("layers.N.ffn_post_norm",)),
)

FAMILY = Family("gemma2", llama.ENDS + llama.ATTENTION + SANDWICH_NORMS + llama.GATED_FFN)
