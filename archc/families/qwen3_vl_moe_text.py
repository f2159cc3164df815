"""qwen3_vl_moe_text: qwen3_moe, chosen weights always divided by their sum (transformers 5.24,
models/qwen3_vl_moe/modeling_qwen3_vl_moe.py)."""

from typing import Any

from archc.families import qwen3_moe
from archc.families.base import Family, Table


def _ffn(c: Any) -> Table:
    section = qwen3_moe.ffn(c)
    if section["kind"] == "moe":
        section = {**section, "router": {"score": "softmax", "renormalize": True}}
    return section


FAMILY = Family("qwen3_vl_moe_text", tier="mixture", config={**qwen3_moe.CONFIG, "attention.window": None, "ffn": _ffn})
