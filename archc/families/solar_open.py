"""solar_open: deepseek_v3's experts on every layer (transformers 5.24, models/solar_open/modeling_solar_open.py)."""

from archc.families import deepseek_v3, glm4_moe, llama
from archc.families.base import Family, Table
from archc.families.common import EMPTY_SHARED

CONFIG: Table = {**glm4_moe.CONFIG, "attention.qk_norm": None, "ffn": deepseek_v3.EXPERTS}

FAMILY = Family(
    "solar_open",
    llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + deepseek_v3.MIXTURE,
    empty=EMPTY_SHARED,
    tier="mixture",
    config=CONFIG,
)
