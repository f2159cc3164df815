"""bloom: distances instead of positions, a normed embedding (transformers 5.24, models/bloom/modeling_bloom.py)."""

from archc.families import gpt_neox
from archc.families.base import Family, Key, Module, Table
from archc.families.common import layernorm

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": lambda c: c.get("seq_length", 2048),  # what it was trained at; the class has no limit
    "embedding.tied": Key("tie_word_embeddings"),
    "embedding.norm": True,
    "layers": Key("n_layer"),
    **layernorm(Key("layer_norm_epsilon")),
    "norm.placement": "pre",
    "position.kind": "alibi",
    "attention.heads": Key("n_head"),
    "attention.bias": "all",
    "ffn.kind": "mlp",
    "ffn.activation": "gelu_tanh",
    "ffn.width": lambda c: 4 * c.hidden_size,
    "ffn.bias": True,
    "residual.carries": lambda c: "normed" if c.apply_residual_connection_post_layernorm else None,
}

ENDS_AND_NORMS = (
    Module("transformer.word_embeddings", ("embedding",)),
    Module("transformer.word_embeddings_layernorm", ("embedding_norm",)),
    Module("transformer.h.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("transformer.h.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
    Module("transformer.ln_f", ("final_norm",)),
    Module("lm_head", ("head",)),
)

FAMILY = Family(
    "bloom",
    ENDS_AND_NORMS + gpt_neox.matrices("transformer.h.N", "self_attention"),
    optional_prefix="transformer.",
    tier="twisted",
    config=CONFIG,
)
