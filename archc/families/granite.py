"""granite: llama with fixed factors (transformers 5.24, models/granite/modeling_granite.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import exact_scale, factor, head_dim

CONFIG: Table = {
    **llama.CONFIG,
    **exact_scale(factor("embedding_multiplier")),
    "logits.scale": lambda c: None if c.logits_scaling == 1 else 1 / c.logits_scaling,
    "attention.head_dim": head_dim,
    "attention.scale": lambda c: float(c.attention_multiplier),
    "residual.branch": factor("residual_multiplier"),
}

FAMILY = Family("granite", llama.FAMILY.rules, tier="twisted", config=CONFIG)
