"""diffllama: llama with differential attention (transformers 5.24, models/diffllama/modeling_diffllama.py)."""

from archc.families import llama
from archc.families.base import Family, Table

CONFIG: Table = {**llama.CONFIG, "attention.differential": True, "ffn.bias": False}

FAMILY = Family("diffllama", config=CONFIG)
