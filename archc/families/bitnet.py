"""bitnet: norms before the last matrix of both branches (transformers 5.24, models/bitnet/modeling_bitnet.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Module, Table
from archc.families.common import head_dim

INNER_NORMS = (
    Module("model.layers.N.self_attn.attn_sub_norm", ("layers.N.attention.output_norm",)),
    Module("model.layers.N.mlp.ffn_sub_norm", ("layers.N.ffn.inner_norm",)),
)


def _head_dim(c: Any) -> int:
    """Channels of a head; the norm before the output projection allows for no other than an equal share."""
    if head_dim(c) * c.num_attention_heads != c.hidden_size:
        raise ValueError("its norm of the heads' output is as wide as hidden_size, and head_dim is not")
    return head_dim(c)


CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": _head_dim,
    "attention.output_norm": True,
    "ffn.bias": False,
    "ffn.inner_norm": True,
}

FAMILY = Family("bitnet", llama.FAMILY.rules + INNER_NORMS, tier="twisted", config=CONFIG)
