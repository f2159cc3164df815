"""ctrl: pre-norm, sines and cosines added to the embedding (transformers 5.24, models/ctrl/modeling_ctrl.py)."""

from archc.families.base import Family, Key, Table
from archc.families.common import block_with_eps, layernorm

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("n_embd"),
    "context": Key("n_positions"),
    "embedding.tied": Key("tie_word_embeddings"),
    "embedding.scale": "sqrt(hidden_size)",
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

FAMILY = Family("ctrl", config=CONFIG)
