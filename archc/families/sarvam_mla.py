"""sarvam_mla: the class of deepseek_v3 (transformers 5.24, models/auto/modeling_auto.py)."""

from archc.families import deepseek_v3
from archc.families.base import Family
from archc.families.common import EMPTY_SHARED

FAMILY = Family("sarvam_mla", deepseek_v3.RULES, empty=EMPTY_SHARED, tier="latent", config=deepseek_v3.CONFIG)
