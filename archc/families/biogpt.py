"""biogpt: pre-norm, learned positions from the third row on (transformers 5.24, models/biogpt/modeling_biogpt.py)."""

from archc.families.base import Family, Key, Table
from archc.families.common import activation, layernorm

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": Key("tie_word_embeddings"),
    "embedding.scale": lambda c: "sqrt(hidden_size)" if c.scale_embedding else None,
    "layers": Key("num_hidden_layers"),
    **layernorm(1e-5),  # layer_norm_eps of the config is read by none of its norms
    "norm.placement": "pre",
    "position": {"kind": "learned", "offset": 2},
    "attention.heads": Key("num_attention_heads"),
    "attention.bias": "all",
    "ffn.kind": "mlp",
    "ffn.activation": activation("hidden_act"),
    "ffn.width": Key("intermediate_size"),
    "ffn.bias": True,
}

FAMILY = Family("biogpt", config=CONFIG)
