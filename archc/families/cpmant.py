"""cpmant: biases by distance and segment, prompts in front of the input (transformers 5.24, models/cpmant)."""

from archc.families.base import Family, Key, Table

CONFIG: Table = {
    "vocab_size": lambda c: c.vocab_size + c.prompt_types * c.prompt_length,
    "hidden_size": Key("hidden_size"),
    "context": Key("position_bias_max_distance"),
    "embedding.tied": False,  # the head is stored apart, whatever tie_word_embeddings says
    "embedding.segments": Key("segment_types"),
    "logits.vocab_size": Key("vocab_size"),
    "layers": Key("num_hidden_layers"),
    "norm.kind": "rmsnorm",
    "norm.eps": Key("eps"),
    "norm.placement": "pre",
    "position.kind": "buckets",
    "position.buckets": Key("position_bias_num_buckets"),
    "position.max_distance": Key("position_bias_max_distance"),
    "position.segments": Key("segment_types"),
    "attention.heads": Key("num_attention_heads"),
    "attention.head_dim": Key("dim_head"),
    "ffn.kind": "gated",
    "ffn.activation": "gelu",
    "ffn.width": Key("dim_ff"),
    "undeclared": lambda c: [
        f"{c.prompt_length} prompt tokens stand before the input, and count as part of the context",
        "a token sees later ones within the prompt and within spans",
    ],
}

FAMILY = Family("cpmant", config=CONFIG)
