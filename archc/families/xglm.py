"""xglm: sines and cosines are added to the embedding (transformers 5.24, models/xglm/modeling_xglm.py)."""

from archc.families import biogpt
from archc.families.base import Family, Key, Table
from archc.families.common import activation, self_attending

CONFIG: Table = {
    **biogpt.CONFIG,
    "layers": self_attending("num_layers"),
    "position": {"kind": "sinusoidal", "offset": 2, "layout": "blocks", "slowest": "exact"},
    "attention.heads": Key("attention_heads"),
    "ffn.activation": activation("activation_function"),
    "ffn.width": Key("ffn_dim"),
}

FAMILY = Family("xglm", config=CONFIG)
