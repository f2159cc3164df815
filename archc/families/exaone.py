"""exaone: the class of llama (transformers 5.24, models/exaone/modular_exaone.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("exaone", config=llama.CONFIG)
