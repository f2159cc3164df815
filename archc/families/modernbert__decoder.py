"""modernbert-decoder: normed embedding, no norm before the first attention, a layer before the head.

(transformers 5.24, models/modernbert_decoder/modeling_modernbert_decoder.py)
"""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, rope_per_kind, sliding
from archc.importing.translate import NULL


def _block(c: Any) -> list[Table] | None:
    """The branches of the first layer."""
    return [{"norm": NULL, "attention": {}}, {"ffn": {}}] if c.layer == 0 else None


def _window(c: Any) -> int | None:
    return c.sliding_window if sliding(c) and c.local_attention else None


CONFIG: Table = {
    **llama.CONFIG,
    "embedding.norm": True,
    "norm.kind": "layernorm",
    "norm.eps": Key("norm_eps"),
    "norm.bias": Key("norm_bias"),
    "position": lambda c: rope_per_kind(c, float32="turning"),
    "attention.kv_heads": None,
    "attention.head_dim": None,
    "attention.window": _window,
    "ffn.activation": activation("hidden_activation"),
    "block": _block,
    "logits.transform": {"activation": activation("classifier_activation"), "bias": Key("classifier_bias")},
    "logits.bias": Key("decoder_bias"),
}

ENDS = (
    Module("model.embeddings.tok_embeddings", ("embedding",)),
    Module("model.embeddings.norm", ("embedding_norm",)),
    Module("model.final_norm", ("final_norm",)),
    Module("lm_head.dense", ("head_transform",)),
    Module("lm_head.norm", ("head_transform_norm",)),
    Module("decoder", ("head",)),
)
LAYERS = (
    Module("model.layers.N.attn_norm", ("layers.N.attention_norm",)),
    Module("model.layers.N.attn.q_proj", ("layers.N.attention.q",)),
    Module("model.layers.N.attn.k_proj", ("layers.N.attention.k",)),
    Module("model.layers.N.attn.v_proj", ("layers.N.attention.v",)),
    Module("model.layers.N.attn.Wo", ("layers.N.attention.o",)),
    Module("model.layers.N.mlp_norm", ("layers.N.ffn_norm",)),
    Module("model.layers.N.mlp.Wi", ("layers.N.ffn.gate", "layers.N.ffn.up")),
    Module("model.layers.N.mlp.Wo", ("layers.N.ffn.down",)),
)

FAMILY = Family("modernbert-decoder", ENDS + LAYERS, tier="twisted", config=CONFIG)
