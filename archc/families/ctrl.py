"""ctrl: pre-norm, sines and cosines added to the embedding (transformers 5.24, models/ctrl/modeling_ctrl.py)."""

from typing import Any

from archc.families.base import Family, Key, Table
from archc.families.common import layernorm

_LAYER_EPS = 1e-6  # layer_norm_epsilon of the config is that of the final norm alone


def _block(c: Any) -> list[Table] | None:
    """The branches, where their norms are not like the final one."""
    if c.layer_norm_epsilon == _LAYER_EPS:
        return None
    return [{"norm": {"eps": _LAYER_EPS}, name: {}} for name in ("attention", "ffn")]


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
    "block": _block,
    "logits.bias": True,
}

FAMILY = Family("ctrl", config=CONFIG)
