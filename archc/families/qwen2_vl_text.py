"""qwen2_vl_text: qwen2, with positions of images that text does not have (transformers 5.24, models/qwen2_vl)."""

from archc.families import qwen2
from archc.families.base import Family

CONFIG = {**qwen2.CONFIG, "attention.head_dim": None}

FAMILY = Family("qwen2_vl_text", tier="dense", config=CONFIG)
