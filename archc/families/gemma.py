"""gemma: named as llama (transformers 5.24, models/gemma/modeling_gemma.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("gemma", llama.FAMILY.rules, ignored=llama.OLD_BUFFERS)
