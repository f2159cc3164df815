"""youtu: latent attention with dense feed-forwards (transformers 5.24, models/youtu/modeling_youtu.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.deepseek_v3 import DENSE, LATENT, LATENT_ATTENTION

CONFIG: Table = {**LATENT, "ffn": DENSE}

FAMILY = Family(
    "youtu", llama.ENDS + LATENT_ATTENTION + llama.PRE_NORMS + llama.GATED_FFN, tier="latent", config=CONFIG
)
