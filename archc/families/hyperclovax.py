"""hyperclovax: granite, with norms on branch outputs and logits multiplied (transformers 5.24, models/hyperclovax)."""

from archc.families import granite
from archc.families.base import Family, Module, Table
from archc.families.common import factor

POST_NORMS = (
    Module("model.layers.N.post_norm1", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.post_norm2", ("layers.N.ffn_post_norm",)),
)

CONFIG: Table = {
    **granite.CONFIG,
    "norm.placement": lambda c: "sandwich" if c.use_post_norm else "pre",
    "attention.scale": lambda c: None if c.attention_multiplier == c.head_dim**-0.5 else float(c.attention_multiplier),
    "logits.scale": factor("logits_scaling"),
}

FAMILY = Family("hyperclovax", granite.FAMILY.rules + POST_NORMS, tier="twisted", config=CONFIG)
