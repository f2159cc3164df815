"""phi: both branches behind one norm, everything biased (transformers 5.24, models/phi/modeling_phi.py)."""

from archc.families import llama, persimmon
from archc.families.base import Family, Key, Module, Table
from archc.families.common import head_dim

ATTENTION = (*llama.QKV, Module("model.layers.N.self_attn.dense", ("layers.N.attention.o",)))
FFN = (
    Module("model.layers.N.mlp.fc1", ("layers.N.ffn.up",)),
    Module("model.layers.N.mlp.fc2", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **persimmon.CONFIG,
    "norm.placement": "parallel",
    "attention.kv_heads": Key("num_key_value_heads"),
    "attention.head_dim": head_dim,
    "logits.bias": True,
}

FAMILY = Family(
    "phi", persimmon.ENDS + llama.PARALLEL_NORM + ATTENTION + persimmon.QK_NORM + FFN, tier="dense", config=CONFIG
)
