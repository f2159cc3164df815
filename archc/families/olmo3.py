"""olmo3: olmo2 with windows, and positions per kind of layer (transformers 5.24, models/olmo3/modeling_olmo3.py)."""

from archc.families import olmo2
from archc.families.base import Family, Table
from archc.families.common import rope_per_kind, window

CONFIG: Table = {**olmo2.CONFIG, "position": lambda c: rope_per_kind(c, float32="all"), "attention.window": window}

FAMILY = Family("olmo3", olmo2.FAMILY.rules, tier="twisted", config=CONFIG)
