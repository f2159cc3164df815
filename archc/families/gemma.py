"""gemma: named as llama (transformers 5.24, models/gemma/modeling_gemma.py)."""

from archc.families import llama
from archc.families.base import Family, Table

CONFIG: Table = {
    **llama.CONFIG,
    "embedding.scale": "sqrt(hidden_size)",
    "norm.weight": "one_plus",
    "ffn.bias": False,
    "undeclared": lambda c: ["queries see later positions too"] if c.use_bidirectional_attention else None,
}

FAMILY = Family("gemma", llama.FAMILY.rules, ignored=llama.OLD_BUFFERS, tier="twisted", config=CONFIG)
