"""modernbert-decoder: normed embedding, no norm before the first attention, a layer before the head.

(transformers 5.24, models/modernbert_decoder/modeling_modernbert_decoder.py)
"""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Table
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
    "position": rope_per_kind,
    "attention.kv_heads": None,
    "attention.head_dim": None,
    "attention.window": _window,
    "ffn.activation": activation("hidden_activation"),
    "block": _block,
    "logits.transform": {"activation": activation("classifier_activation"), "bias": Key("classifier_bias")},
    "logits.bias": Key("decoder_bias"),
}

FAMILY = Family("modernbert-decoder", config=CONFIG)
