"""stablelm: layer norms, one for each head of queries and keys (transformers 5.24, models/stablelm)."""

from archc.families import llama
from archc.families.base import Family, Key, Parameter, Table
from archc.families.common import layernorm, partial_rope, qkvo

QK_NORM = (
    Parameter("model.layers.N.self_attn.q_layernorm.norms.E.weight", ("layers.N.attention.q_norm.weight",)),
    Parameter("model.layers.N.self_attn.k_layernorm.norms.E.weight", ("layers.N.attention.k_norm.weight",)),
)

CONFIG: Table = {
    **llama.CONFIG,
    "position": partial_rope,
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": lambda c: "parallel" if c.use_parallel_residual else "pre",
    "attention.head_dim": None,
    "attention.bias": lambda c: qkvo(c.use_qkv_bias, c.use_qkv_bias, c.use_qkv_bias, False),
    "attention.qk_norm": lambda c: {"over": "each_head", "bias": False} if c.qk_layernorm else None,
    "ffn.bias": False,
}

FAMILY = Family("stablelm", llama.FAMILY.rules + llama.PARALLEL_NORM + QK_NORM, tier="dense", config=CONFIG)
