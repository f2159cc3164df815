"""openai-gpt: norms of the whole stream behind each branch (transformers 5.24, models/openai/modeling_openai.py)."""

from typing import Any

from archc.families import gpt2
from archc.families.base import Family, Key, Module, Table

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

ENDS = (
    Module("transformer.tokens_embed", ("embedding",)),
    Module("transformer.positions_embed", ("position_embedding",)),
    Module("lm_head", ("head",)),
)
POST_NORMS = (
    Module("transformer.h.N.ln_1", ("layers.N.attention_post_norm",)),
    Module("transformer.h.N.ln_2", ("layers.N.ffn_post_norm",)),
)

FAMILY = Family(
    "openai-gpt",
    ENDS + POST_NORMS + gpt2.TRANSPOSED,
    optional_prefix="transformer.",
    ignored=("transformer.h.N.attn.bias",),
    tier="dense",
    config=CONFIG,
)
