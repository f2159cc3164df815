"""qwen3_vl_text: qwen3, with positions of images that text does not have (transformers 5.24,
models/qwen3_vl/modeling_qwen3_vl.py)."""

from archc.families import qwen3
from archc.families.base import Family

FAMILY = Family("qwen3_vl_text", tier="dense", config={**qwen3.CONFIG, "attention.window": None})
