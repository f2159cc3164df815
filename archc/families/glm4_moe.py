"""glm4_moe: partial rope, deepseek_v3's experts (transformers 5.24, models/glm4_moe/modeling_glm4_moe.py)."""

from archc.families import deepseek_v3, llama, qwen3
from archc.families.base import Family, Table
from archc.families.common import EMPTY_SHARED, head_dim, partial_rope, qkvo, without

CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": partial_rope,
    "attention.head_dim": head_dim,
    "attention.bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, False),
    "attention.qk_norm": lambda c: {"over": "head"} if c.use_qk_norm else None,
    "ffn": deepseek_v3.CONFIG["ffn"],
}

FAMILY = Family(
    "glm4_moe",
    qwen3.FAMILY.rules + deepseek_v3.MIXTURE,
    empty=EMPTY_SHARED,
    extra_layers=True,
    tier="mixture",
    config=CONFIG,
)
