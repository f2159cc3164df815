"""iquestcoder: the class of llama (transformers 5.24, models/iquestcoder/modular_iquestcoder.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("iquestcoder", llama.FAMILY.rules, tier="dense", config=llama.CONFIG)
