"""gemma4_unified_text: heads and positions per kind of layer (transformers 5.24, models/gemma4_unified)."""

from typing import Any

from archc.families import gemma3_text
from archc.families.base import Family, Inverse, Parameter, Table
from archc.families.common import sliding


def reuses(c: Any) -> bool:
    """Whether the layer in question attends to keys and values of an earlier one."""
    return bool(c.kv_sharing_modes[c.layer] == "reuse")


def _takes_keys(c: Any) -> bool:
    return c.attention_k_eq_v and not sliding(c) and not reuses(c)


def _width(c: Any) -> int:
    found: int = c.intermediate_size * (2 if c.use_double_wide_mlp and reuses(c) else 1)
    return found


CONFIG: Table = {
    **gemma3_text.CONFIG,
    "norm.weight": "plain",
    "attention.kv_heads": lambda c: c.per_layer_config[c.layer].num_key_value_heads,
    "attention.head_dim": lambda c: c.per_layer_config[c.layer].head_dim,
    "attention.scale": 1.0,
    "attention.softcap": None,
    "attention.v_norm": True,
    "attention.values": lambda c: "keys" if _takes_keys(c) else None,
    "attention.kv": lambda c: "reused" if reuses(c) else None,
    "ffn.width": _width,
    "residual.layer_scalar": True,
    "undeclared": lambda c: ["queries see later positions too"] if c.use_bidirectional_attention == "all" else None,
}


def _overrides(o: Any) -> dict[str, Any]:
    sizes = zip(o.column("attention.head_dim"), o.column("attention.kv_heads"), strict=True)
    return {str(i): {"head_dim": head_dim, "num_key_value_heads": heads} for i, (head_dim, heads) in enumerate(sizes)}


INVERSE: Inverse = {
    "head_dim": lambda o: o.first("attention.head_dim", windowed=True),
    "num_key_value_heads": lambda o: o.first("attention.kv_heads", windowed=True),
    "per_layer_config": _overrides,
    "num_kv_shared_layers": lambda o: o.column("attention.kv").count("reused"),
    "attention_k_eq_v": lambda o: "keys" in o.column("attention.values"),
}

LAYER_SCALAR = (Parameter("model.layers.N.layer_scalar", ("layers.N.scalar",)),)

FAMILY = Family(
    "gemma4_unified_text", gemma3_text.FAMILY.rules + LAYER_SCALAR, tier="twisted", config=CONFIG, inverse=INVERSE
)
