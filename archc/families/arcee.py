"""arcee: llama with a plain feed-forward (transformers 5.24, models/arcee/modeling_arcee.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("arcee", llama.FAMILY.rules, tier="dense", config={**llama.CONFIG, "ffn.kind": "mlp"})
