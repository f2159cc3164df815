"""gptj: both branches behind one norm, neighbours as pairs (transformers 5.24, models/gptj/modeling_gptj.py)."""

from archc.families import gpt2
from archc.families.base import Family, Key, Table
from archc.families.common import share

CONFIG: Table = {
    **gpt2.CONFIG,
    "layers": Key("n_layer"),
    "norm.placement": "parallel",
    "position.kind": "rope",
    "position.base": 10000.0,
    "position.pairing": "interleaved",
    "position.partial": lambda c: share(c.rotary_dim, c.n_embd // c.n_head),
    "attention.bias": "none",
    "attention.scale": None,
    "logits.bias": True,
}

FAMILY = Family("gptj", config=CONFIG)
