"""phi3: q, k, v in one matrix, gate and up in another (transformers 5.24, models/phi3/modeling_phi3.py)."""

from archc.families import llama, mistral
from archc.families.base import Family, Key, Module, Table
from archc.families.common import head_dim, partial_rope

FUSED_ATTENTION = (
    Module(
        "model.layers.N.self_attn.qkv_proj",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
    ),
    Module("model.layers.N.self_attn.o_proj", ("layers.N.attention.o",)),
)
FUSED_FFN = (
    Module("model.layers.N.mlp.gate_up_proj", ("layers.N.ffn.gate", "layers.N.ffn.up")),
    Module("model.layers.N.mlp.down_proj", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **llama.CONFIG,
    "position": partial_rope,
    "attention.head_dim": head_dim,
    "attention.bias": "none",
    "attention.window": Key("sliding_window"),
    "attention.window_rows": mistral.window_rows,
    "ffn.bias": False,
}

FAMILY = Family(
    "phi3",
    llama.ENDS + FUSED_ATTENTION + llama.PRE_NORMS + FUSED_FFN,
    ignored=llama.OLD_BUFFERS,
    tier="dense",
    config=CONFIG,
    inverse=mistral.INVERSE,
)
