"""sarvam_moe: glm4_moe under names of its own (transformers 5.24, models/sarvam_moe)."""

from archc.families import glm4_moe
from archc.families.base import Family

FAMILY = Family("sarvam_moe", config=glm4_moe.CONFIG)
