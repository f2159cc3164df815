"""starcoder2: layer norms, a plain feed-forward (transformers 5.24, models/starcoder2/modeling_starcoder2.py)."""

from archc.families import llama, mistral
from archc.families.base import Family, Key, Module, Table
from archc.families.common import layernorm, qkvo

FFN = (
    Module("model.layers.N.mlp.c_fc", ("layers.N.ffn.up",)),
    Module("model.layers.N.mlp.c_proj", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **mistral.CONFIG,
    **layernorm(Key("norm_epsilon")),
    "attention.bias": lambda c: qkvo(*[c.use_bias] * 4),
    "ffn.kind": "mlp",
    "ffn.bias": Key("use_bias"),
}

FAMILY = Family(
    "starcoder2",
    llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + FFN,
    tier="dense",
    config=CONFIG,
    inverse=mistral.INVERSE,
)
