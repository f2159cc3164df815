"""dots1: qwen3's attention, deepseek_v3's experts (transformers 5.24, models/dots1/modeling_dots1.py)."""

from archc.families import deepseek_v3, qwen3
from archc.families.base import Family, Table
from archc.families.common import EMPTY_SHARED, without

CONFIG: Table = {**without(qwen3.CONFIG, "ffn"), "ffn": deepseek_v3.CONFIG["ffn"]}

FAMILY = Family("dots1", qwen3.FAMILY.rules + deepseek_v3.MIXTURE, empty=EMPTY_SHARED, tier="mixture", config=CONFIG)
