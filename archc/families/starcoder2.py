"""starcoder2: layer norms, a plain feed-forward (transformers 5.24, models/starcoder2/modeling_starcoder2.py)."""

from archc.families import mistral
from archc.families.base import Family, Key, Table
from archc.families.common import layernorm, qkvo

CONFIG: Table = {
    **mistral.CONFIG,
    **layernorm(Key("norm_epsilon")),
    "attention.bias": lambda c: qkvo(*[c.use_bias] * 4),
    "ffn.kind": "mlp",
    "ffn.bias": Key("use_bias"),
}

FAMILY = Family("starcoder2", config=CONFIG)
