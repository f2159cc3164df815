"""mimo_v2_flash: wide keys, narrow values, sinks on sliding layers (transformers 5.24, models/mimo_v2_flash)."""

from typing import Any

from archc.families import deepseek_v3, llama
from archc.families.base import Family, Key, Parameter, Table
from archc.families.common import (
    CORRECTION,
    ROUTED_EXPERTS,
    factor,
    gated,
    partial_rope,
    qkvo,
    sliding,
    window,
    without,
)

SINKS = (Parameter("model.layers.N.self_attn.attention_sink_bias", ("layers.N.attention.sinks",)),)


def ffn(c: Any) -> Table:
    """deepseek_v3's experts without shared ones, or a dense feed-forward."""
    return {**deepseek_v3.EXPERTS, "shared": None} if c.mlp_layer_types[c.layer] == "sparse" else gated()


def position(c: Any) -> dict[str, Any]:
    """Rotary positions; without a scaling, the class has a share of its own where the config states none."""
    kind = c.layer_types[c.layer]
    rope = c.rope(kind)
    own = rope.get("rope_type") == "default" and rope.get("partial_rotary_factor") is None
    return {**partial_rope(c, kind), **({"partial": 0.334} if own else {})}


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": position,
    "attention.kv_heads": lambda c: c.num_key_value_heads * (2 if sliding(c) else 1),
    "attention.value_dim": Key("v_head_dim"),
    "attention.value_scale": factor("attention_value_scale"),
    "attention.bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, False),
    "attention.window": window,
    "attention.sinks": lambda c: "column" if sliding(c) else None,
    "ffn": ffn,
}


def _kv_heads(o: Any) -> int:
    full, windowed = (o.first("attention.kv_heads", windowed=value) for value in (False, True))
    found: int = full or windowed // 2
    return found


FAMILY = Family(
    "mimo_v2_flash",
    llama.FAMILY.rules + SINKS + ROUTED_EXPERTS + CORRECTION,
    ignored=("model.mtp.",),
    tier="mixture",
    config=CONFIG,
    inverse={"num_key_value_heads": _kv_heads},
)
