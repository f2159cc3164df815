"""llama: the names that most families share (transformers 5.24, models/llama/modeling_llama.py)."""

from archc.families.base import Family, Module

ENDS = (
    Module("model.embed_tokens", ("embedding",)),
    Module("model.norm", ("final_norm",)),
    Module("lm_head", ("head",)),
)
ATTENTION = (
    Module("model.layers.N.self_attn.q_proj", ("layers.N.attention.q",)),
    Module("model.layers.N.self_attn.k_proj", ("layers.N.attention.k",)),
    Module("model.layers.N.self_attn.v_proj", ("layers.N.attention.v",)),
    Module("model.layers.N.self_attn.o_proj", ("layers.N.attention.o",)),
)
QK_NORM = (
    Module("model.layers.N.self_attn.q_norm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.self_attn.k_norm", ("layers.N.attention.k_norm",)),
)
PRE_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
)
GATED_FFN = (
    Module("model.layers.N.mlp.gate_proj", ("layers.N.ffn.gate",)),
    Module("model.layers.N.mlp.up_proj", ("layers.N.ffn.up",)),
    Module("model.layers.N.mlp.down_proj", ("layers.N.ffn.down",)),
)
OLD_BUFFERS = ("model.layers.N.self_attn.rotary_emb.inv_freq",)

FAMILY = Family("llama", ENDS + ATTENTION + PRE_NORMS + GATED_FFN, ignored=OLD_BUFFERS)
