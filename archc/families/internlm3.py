"""internlm3: the class of llama (transformers 5.24, models/internlm3/modular_internlm3.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("internlm3", llama.FAMILY.rules, tier="dense", config=llama.CONFIG)
