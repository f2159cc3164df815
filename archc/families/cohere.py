"""cohere: both branches behind one norm, neighbours as pairs (transformers 5.24, models/cohere/modeling_cohere.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import factor, head_dim, rope

CONFIG: Table = {
    **llama.CONFIG,
    "norm.kind": "layernorm",
    "norm.eps": Key("layer_norm_eps"),
    "norm.placement": "parallel",
    "position": lambda c: rope(c, pairing="interleaved", float32="turning"),
    "attention.head_dim": head_dim,
    "attention.qk_norm": lambda c: {"over": "each_head"} if c.use_qk_norm else None,
    "ffn.bias": False,
    "logits.scale": factor("logit_scale"),
}

FAMILY = Family(
    "cohere",
    llama.ENDS + llama.ATTENTION + llama.QK_NORM + llama.PARALLEL_NORM + llama.GATED_FFN,
    tier="twisted",
    config=CONFIG,
)
