"""youtu: latent attention with dense feed-forwards (transformers 5.24, models/youtu/modeling_youtu.py)."""

from archc.families.base import Family, Table
from archc.families.deepseek_v3 import DENSE, LATENT

CONFIG: Table = {**LATENT, "ffn": DENSE}

FAMILY = Family("youtu", config=CONFIG)
