"""gpt_neox: both branches side by side, each with its norm (transformers 5.24, models/gpt_neox)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import layernorm, partial_rope

CONFIG: Table = {
    **llama.CONFIG,
    "position": partial_rope,
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": lambda c: "parallel_separate" if c.use_parallel_residual else "pre",
    "attention.kv_heads": None,
    "attention.head_dim": None,
    "ffn.kind": "mlp",
    "ffn.bias": True,
}

FAMILY = Family("gpt_neox", config=CONFIG)
