"""gpt_neox_japanese: one bias, behind the last attention (transformers 5.24,
models/gpt_neox_japanese/modeling_gpt_neox_japanese.py)."""

from archc.families import gpt_neox
from archc.families.base import Family, Module, Parameter, Table

CONFIG: Table = {
    **gpt_neox.CONFIG,
    "norm.placement": "pre",
    "attention.bias": lambda c: ["o"] if c.layer == c.num_hidden_layers - 1 else "none",
    "ffn.width": lambda c: int(c.hidden_size * c.intermediate_multiple_size),
    "ffn.bias": False,
}

RULES = (
    Module("gpt_neox_japanese.embed_in", ("embedding",)),
    Module("gpt_neox_japanese.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module(
        "gpt_neox_japanese.layers.N.attention.query_key_value",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
        groups="kv_heads",
    ),
    Parameter("gpt_neox_japanese.layers.N.attention.dense.weight", ("layers.N.attention.o.weight",)),
    Parameter("gpt_neox_japanese.layers.N.attention.dense_bias", ("layers.N.attention.o.bias",)),
    Module("gpt_neox_japanese.layers.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
    Module("gpt_neox_japanese.layers.N.mlp.dense_h_to_4h", ("layers.N.ffn.up",)),
    Module("gpt_neox_japanese.layers.N.mlp.dense_4h_to_h", ("layers.N.ffn.down",)),
    Module("gpt_neox_japanese.final_layer_norm", ("final_norm",)),
    Module("embed_out", ("head",)),
)

FAMILY = Family(
    "gpt_neox_japanese",
    RULES,
    ignored=("gpt_neox_japanese.layers.N.attention.rotary_emb.inv_freq",),
    tier="dense",
    config=CONFIG,
)
