"""gemma3_text: gemma2 with a norm on queries and keys (transformers 5.24, models/gemma3/modeling_gemma3.py)."""

from archc.families import gemma2, llama
from archc.families.base import Family, Table
from archc.families.common import rope

CONFIG: Table = {
    **gemma2.CONFIG,
    "position": lambda c: rope(c, c.layer_types[c.layer]),
    "attention.softcap": None,  # its class reads attn_logit_softcapping and does not use it
    "attention.qk_norm.over": "head",
}

FAMILY = Family("gemma3_text", gemma2.FAMILY.rules + llama.QK_NORM, tier="twisted", config=CONFIG)
