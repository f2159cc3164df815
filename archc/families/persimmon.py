"""persimmon: layer norms, on queries and keys too (transformers 5.24, models/persimmon/modeling_persimmon.py)."""

from archc.families import gpt_neox, llama
from archc.families.base import Family, Module, Table

ENDS = (
    Module("model.embed_tokens", ("embedding",)),
    Module("model.final_layernorm", ("final_norm",)),
    Module("lm_head", ("head",)),
)
QK_NORM = (
    Module("model.layers.N.self_attn.q_layernorm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.self_attn.k_layernorm", ("layers.N.attention.k_norm",)),
)

CONFIG: Table = {
    **gpt_neox.CONFIG,
    "norm.placement": "pre",
    "attention.bias": "all",
    "attention.qk_norm": lambda c: {"over": "head"} if c.qk_layernorm else None,
}

FAMILY = Family(
    "persimmon",
    ENDS + llama.PRE_NORMS + gpt_neox.matrices("model.layers.N", "self_attn") + QK_NORM,
    tier="dense",
    config=CONFIG,
)
