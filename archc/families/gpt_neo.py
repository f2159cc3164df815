"""gpt_neo: logits of attention unscaled, windows by mask alone (transformers 5.24, models/gpt_neo)."""

from typing import Any

from archc.families import gpt2
from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, layernorm

ATTENTION = (
    Module("transformer.h.N.attn.attention.q_proj", ("layers.N.attention.q",)),
    Module("transformer.h.N.attn.attention.k_proj", ("layers.N.attention.k",)),
    Module("transformer.h.N.attn.attention.v_proj", ("layers.N.attention.v",)),
    Module("transformer.h.N.attn.attention.out_proj", ("layers.N.attention.o",)),
)
FFN = (
    Module("transformer.h.N.mlp.c_fc", ("layers.N.ffn.up",)),
    Module("transformer.h.N.mlp.c_proj", ("layers.N.ffn.down",)),
)


def _local(c: Any) -> bool:
    found = c.attention_layers[c.layer]
    if found not in ("global", "local"):
        raise ValueError(f"attention_types names {found!r}, which is neither global nor local")
    return bool(found == "local")


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("num_layers"),
    **layernorm(Key("layer_norm_epsilon")),
    "norm.placement": "pre",
    "position.kind": "learned",
    "attention.heads": Key("num_heads"),
    "attention.bias": ("o",),
    "attention.scale": 1.0,
    "attention.window": lambda c: c.window_size if _local(c) else None,
    "attention.window_rows": lambda c: "kept" if _local(c) else None,
    "ffn.kind": "mlp",
    "ffn.activation": activation("activation_function"),
    "ffn.width": lambda c: 4 * c.hidden_size if c.intermediate_size is None else c.intermediate_size,
    "ffn.bias": True,
}


def _attention_types(o: Any) -> list[object]:
    return [[["local" if window else "global"], 1] for window in o.column("attention.window")]


FAMILY = Family(
    "gpt_neo",
    gpt2.ENDS + gpt2.NORMS + ATTENTION + FFN,
    ignored=("transformer.h.N.attn.attention.bias", "transformer.h.N.attn.attention.masked_bias"),
    tier="dense",
    config=CONFIG,
    inverse={"attention_types": _attention_types},
)
