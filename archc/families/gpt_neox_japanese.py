"""gpt_neox_japanese: one bias, behind the last attention (transformers 5.24,
models/gpt_neox_japanese/modeling_gpt_neox_japanese.py)."""

from archc.families import gpt_neox
from archc.families.base import Family, Table

CONFIG: Table = {
    **gpt_neox.CONFIG,
    "norm.placement": "pre",
    "attention.bias": lambda c: ["o"] if c.layer == c.num_hidden_layers - 1 else "none",
    "ffn.width": lambda c: int(c.hidden_size * c.intermediate_multiple_size),
    "ffn.bias": False,
}

FAMILY = Family("gpt_neox_japanese", config=CONFIG)
