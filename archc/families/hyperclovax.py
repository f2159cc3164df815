"""hyperclovax: granite, with norms on branch outputs and logits multiplied (transformers 5.24, models/hyperclovax)."""

from archc.families import granite
from archc.families.base import Family, Table
from archc.families.common import factor

CONFIG: Table = {
    **granite.CONFIG,
    "norm.placement": lambda c: "sandwich" if c.use_post_norm else "pre",
    "attention.scale": lambda c: None if c.attention_multiplier == c.head_dim**-0.5 else float(c.attention_multiplier),
    "logits.scale": factor("logits_scaling"),
}

FAMILY = Family("hyperclovax", config=CONFIG)
