"""glm4_moe_lite: deepseek_v3 with dense layers by a list (transformers 5.24, models/glm4_moe_lite)."""

from archc.families.base import Family, Table
from archc.families.common import EMPTY_SHARED
from archc.families.deepseek_v3 import LATENT, RULES, sparse_by_type

CONFIG: Table = {**LATENT, "ffn": sparse_by_type}

FAMILY = Family("glm4_moe_lite", RULES, empty=EMPTY_SHARED, extra_layers=True, tier="latent", config=CONFIG)
