"""cpmant: biases by distance and segment, prompts in front of the input (transformers 5.24, models/cpmant)."""

from re import search
from typing import Any

from archc.families.base import Family, Inverse, Key, Table

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


def _prompt_length(o: Any) -> int:
    found = search(r"(\d+) prompt tokens", " ".join(o.header["undeclared"]))
    return int(found[1]) if found else 0


def _prompt_types(o: Any) -> int | None:
    length = _prompt_length(o)
    return (o.header["vocab_size"] - o.header["logits.vocab_size"]) // length if length else None


INVERSE: Inverse = {
    "vocab_size": lambda o: o.header["logits.vocab_size"],
    "prompt_length": _prompt_length,
    "prompt_types": _prompt_types,
}

FAMILY = Family("cpmant", tier="exotic", config=CONFIG, inverse=INVERSE)
