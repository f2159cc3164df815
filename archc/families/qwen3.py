"""qwen3: llama with a norm on queries and keys (transformers 5.24, models/qwen3/modeling_qwen3.py)."""

from archc.families import llama
from archc.families.base import Family

FAMILY = Family("qwen3", llama.FAMILY.rules + llama.QK_NORM)
