"""qwen3_next: gated delta nets, now and then gated attention, experts (transformers 5.24, models/qwen3_next)."""

from typing import Any

from archc.families import jamba, llama, qwen2_moe
from archc.families.base import Family, Key, Table
from archc.families.common import activation, partial_rope, qkvo, without

MIXER: Table = {
    "kind": "gated_delta",
    "key_heads": Key("linear_num_key_heads"),
    "value_heads": Key("linear_num_value_heads"),
    "key_dim": Key("linear_key_head_dim"),
    "value_dim": Key("linear_value_head_dim"),
    "kernel": Key("linear_conv_kernel_dim"),
    "activation": activation("hidden_act"),
    "gate": "silu",
    "output_norm": {"weight": "plain"},
}
ATTENTION: Table = {
    **jamba.ATTENTION,
    "bias": lambda c: qkvo(*[c.attention_bias] * 4),
    "qk_norm": {"over": "head"},
    "gate": {"over": "element", "bias": Key("attention_bias")},
}


def mixer(c: Any) -> Table | None:
    """The section `mixer` of the layers without attention."""
    return None if jamba.attends(c) else MIXER


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": partial_rope,
    "norm.weight": "one_plus",
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": mixer,
    "ffn": qwen2_moe.ffn,
}

FAMILY = Family("qwen3_next", tier="hybrid", config=CONFIG)
