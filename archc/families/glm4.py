"""glm4: glm with norms on both sides of each branch (transformers 5.24, models/glm4/modeling_glm4.py)."""

from archc.families import glm, llama, phi3
from archc.families.base import Family, Module, Table

SANDWICH_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_self_attn_layernorm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
    Module("model.layers.N.post_mlp_layernorm", ("layers.N.ffn_post_norm",)),
)

CONFIG: Table = {**glm.CONFIG, "norm.placement": "sandwich"}

FAMILY = Family("glm4", llama.ENDS + llama.ATTENTION + SANDWICH_NORMS + phi3.FUSED_FFN, tier="twisted", config=CONFIG)
