"""seed_oss: llama with biases chosen apart (transformers 5.24, models/seed_oss/modeling_seed_oss.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import qkvo

CONFIG: Table = {
    **llama.CONFIG,
    "attention.bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, c.attention_out_bias),
}

FAMILY = Family("seed_oss", llama.FAMILY.rules, tier="dense", config=CONFIG)
