"""ctrl: pre-norm, sines and cosines added to the embedding (transformers 5.24, models/ctrl/modeling_ctrl.py)."""

from archc.families.base import Family, Key, Module, Table
from archc.families.common import block_with_eps, exact_scale, layernorm

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("n_embd"),
    "context": Key("n_positions"),
    "embedding.tied": Key("tie_word_embeddings"),
    **exact_scale("sqrt(hidden_size)"),
    "layers": Key("n_layer"),
    **layernorm(Key("layer_norm_epsilon")),
    "norm.placement": "pre",
    "position": {"kind": "sinusoidal", "layout": "blocks"},
    "attention.heads": Key("n_head"),
    "attention.bias": "all",
    "ffn.kind": "mlp",
    "ffn.activation": "relu",
    "ffn.width": Key("dff"),
    "ffn.bias": True,
    "block": block_with_eps(1e-6, "layer_norm_epsilon"),
    "logits.bias": True,
}

RULES = (
    Module("transformer.w", ("embedding",)),
    Module("transformer.h.N.layernorm1", ("layers.N.attention_norm",)),
    Module("transformer.h.N.multi_head_attention.Wq", ("layers.N.attention.q",)),
    Module("transformer.h.N.multi_head_attention.Wk", ("layers.N.attention.k",)),
    Module("transformer.h.N.multi_head_attention.Wv", ("layers.N.attention.v",)),
    Module("transformer.h.N.multi_head_attention.dense", ("layers.N.attention.o",)),
    Module("transformer.h.N.layernorm2", ("layers.N.ffn_norm",)),
    Module("transformer.h.N.ffn.0", ("layers.N.ffn.up",)),
    Module("transformer.h.N.ffn.2", ("layers.N.ffn.down",)),
    Module("transformer.layernorm", ("final_norm",)),
    Module("lm_head", ("head",)),
)

FAMILY = Family("ctrl", RULES, tier="twisted", config=CONFIG)
