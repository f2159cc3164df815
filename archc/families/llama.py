"""llama: the names that most families share (transformers 5.24, models/llama/modeling_llama.py)."""

from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, qkvo, rope

ENDS = (
    Module("model.embed_tokens", ("embedding",)),
    Module("model.norm", ("final_norm",)),
    Module("lm_head", ("head",)),
)
QKV = (
    Module("model.layers.N.self_attn.q_proj", ("layers.N.attention.q",)),
    Module("model.layers.N.self_attn.k_proj", ("layers.N.attention.k",)),
    Module("model.layers.N.self_attn.v_proj", ("layers.N.attention.v",)),
)
ATTENTION = (*QKV, Module("model.layers.N.self_attn.o_proj", ("layers.N.attention.o",)))
QK_NORM = (
    Module("model.layers.N.self_attn.q_norm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.self_attn.k_norm", ("layers.N.attention.k_norm",)),
)
PRE_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
)
PARALLEL_NORM = (Module("model.layers.N.input_layernorm", ("layers.N.norm",)),)
GATED_FFN = (
    Module("model.layers.N.mlp.gate_proj", ("layers.N.ffn.gate",)),
    Module("model.layers.N.mlp.up_proj", ("layers.N.ffn.up",)),
    Module("model.layers.N.mlp.down_proj", ("layers.N.ffn.down",)),
)
OLD_BUFFERS = ("model.layers.N.self_attn.rotary_emb.inv_freq",)

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("num_hidden_layers"),
    "norm.kind": "rmsnorm",
    "norm.eps": Key("rms_norm_eps"),
    "norm.placement": "pre",
    "position": rope,
    "attention.heads": Key("num_attention_heads"),
    "attention.kv_heads": Key("num_key_value_heads"),
    "attention.head_dim": Key("head_dim"),
    "attention.bias": lambda c: qkvo(*[c.attention_bias] * 4),
    "ffn.kind": "gated",
    "ffn.activation": activation("hidden_act"),
    "ffn.width": Key("intermediate_size"),
    "ffn.bias": Key("mlp_bias"),
}

FAMILY = Family("llama", ENDS + ATTENTION + PRE_NORMS + GATED_FFN, ignored=OLD_BUFFERS, tier="dense", config=CONFIG)
