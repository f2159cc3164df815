"""gpt_bigcode: gpt2 with one key/value head (transformers 5.24, models/gpt_bigcode/modeling_gpt_bigcode.py)."""

from archc.families import gpt2
from archc.families.base import Family, Table

CONFIG: Table = {
    **gpt2.CONFIG,
    "attention.kv_heads": lambda c: 1 if c.multi_query else c.n_head,
    "attention.scale": lambda c: None if c.scale_attn_weights else 1.0,
}

FAMILY = Family("gpt_bigcode", config=CONFIG)
