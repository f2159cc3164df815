"""recurrent_gemma: RG-LRU and local attention (transformers 5.24, models/recurrent_gemma)."""

from math import frexp, ldexp
from typing import Any

from archc.families import jamba, llama
from archc.families.base import Family, Key, Table
from archc.families.common import activation, partial_rope, qkvo, without

ATTENTION: Table = {
    **jamba.ATTENTION,
    "bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, True),
    "window": Key("attention_window_size"),
}
MIXER: Table = {
    "kind": "rg_lru",
    "width": Key("lru_width"),
    "blocks": Key("num_attention_heads"),
    "kernel": Key("conv1d_width"),
    "activation": activation("hidden_activation"),
}


def recurrent(c: Any) -> bool:
    """Whether the layer in question is recurrent, and not local attention."""
    return bool(c.layer_types[c.layer] == "linear_attention")


def scale(c: Any) -> float:
    """sqrt(hidden_size) as a bfloat16, which has eight binary digits."""
    fraction, exponent = frexp(c.hidden_size**0.5)
    return ldexp(round(fraction * 256), exponent - 8)


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": partial_rope,
    "context": 8192,  # no key states it: Botev et al. (2024) trained at this length
    "embedding.scale": scale,
    "logits.softcap": lambda c: float(c.logits_soft_cap),
    "norm.weight": "one_plus",
    "attention": lambda c: None if recurrent(c) else ATTENTION,
    "mixer": lambda c: MIXER if recurrent(c) else None,
    "ffn": {
        "kind": "gated",
        "activation": activation("hidden_activation"),
        "width": lambda c: c.intermediate_size // 2,
        "bias": True,
    },
}


def _block_types(o: Any) -> list[str]:
    return ["attention" if heads else "recurrent" for heads in o.column("attention.heads")]


FAMILY = Family("recurrent_gemma", tier="hybrid", config=CONFIG, inverse={"block_types": _block_types})
