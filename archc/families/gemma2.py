"""gemma2: norms on both sides of each branch (transformers 5.24, models/gemma2/modeling_gemma2.py)."""

from archc.families import gemma, llama
from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, window

SANDWICH_NORMS = (
    Module("model.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.post_attention_layernorm", ("layers.N.attention_post_norm",)),
    Module("model.layers.N.pre_feedforward_layernorm", ("layers.N.ffn_norm",)),
    Module("model.layers.N.post_feedforward_layernorm", ("layers.N.ffn_post_norm",)),
)

CONFIG: Table = {
    **gemma.CONFIG,
    "norm.placement": "sandwich",
    "attention.scale": lambda c: c.query_pre_attn_scalar**-0.5,
    "attention.window": window,
    "attention.softcap": Key("attn_logit_softcapping"),
    "ffn.activation": activation("hidden_activation"),
    "logits.softcap": Key("final_logit_softcapping"),
}

FAMILY = Family(
    "gemma2", llama.ENDS + llama.ATTENTION + SANDWICH_NORMS + llama.GATED_FFN, tier="twisted", config=CONFIG
)
