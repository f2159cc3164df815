"""mistral: named as llama (transformers 5.24, models/mistral/modeling_mistral.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("mistral", llama.FAMILY.rules, ignored=llama.OLD_BUFFERS)
