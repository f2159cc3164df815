"""qwen3_5_moe_text: qwen3_next with experts on every layer (transformers 5.24, models/qwen3_5_moe)."""

from archc.families import qwen2_moe, qwen3_next
from archc.families.base import Family, Table

CONFIG: Table = {
    **qwen3_next.CONFIG,
    "ffn": {**qwen2_moe.EXPERTS, "router": {"score": "softmax", "renormalize": True}},
}

FAMILY = Family("qwen3_5_moe_text", tier="hybrid", config=CONFIG)
