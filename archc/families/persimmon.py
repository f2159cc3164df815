"""persimmon: layer norms, on queries and keys too (transformers 5.24, models/persimmon/modeling_persimmon.py)."""

from archc.families import gpt_neox
from archc.families.base import Family, Table

CONFIG: Table = {
    **gpt_neox.CONFIG,
    "norm.placement": "pre",
    "attention.bias": "all",
    "attention.qk_norm": lambda c: {"over": "head"} if c.qk_layernorm else None,
}

FAMILY = Family("persimmon", config=CONFIG)
