"""qwen2: named as llama (transformers 5.24, models/qwen2/modeling_qwen2.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("qwen2", llama.FAMILY.rules, ignored=llama.OLD_BUFFERS)
