"""emu3_text_model: llama (transformers 5.24, models/emu3/modeling_emu3.py)."""

from archc.families import llama
from archc.families.base import Family
from archc.families.common import head_dim

FAMILY = Family("emu3_text_model", tier="dense", config={**llama.CONFIG, "attention.head_dim": head_dim})
