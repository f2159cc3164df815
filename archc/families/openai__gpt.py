"""openai-gpt: norms of the whole stream behind each branch (transformers 5.24, models/openai/modeling_openai.py)."""

from typing import Any

from archc.families import gpt2
from archc.families.base import Family, Key, Table

# Of its own table of activations, in which gelu is the form with tanh.
_ACTIVATIONS = {"relu": "relu", "silu": "silu", "gelu": "gelu_tanh", "swish": "silu"}


def _activation(c: Any) -> str:
    if c.afn not in _ACTIVATIONS:
        raise ValueError(f"afn {c.afn!r} is none of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[c.afn]


CONFIG: Table = {
    **gpt2.CONFIG,
    "layers": Key("n_layer"),
    "norm.placement": "post_sum",
    "final_norm": False,
    "attention.scale": None,
    "ffn.activation": _activation,
    "ffn.width": lambda c: 4 * c.n_embd,
}

FAMILY = Family("openai-gpt", config=CONFIG)
