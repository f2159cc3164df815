"""gptj: both branches behind one norm, neighbours as pairs (transformers 5.24, models/gptj/modeling_gptj.py)."""

from archc.families import gpt2
from archc.families.base import Family, Key, Module, Table
from archc.families.common import share

NORM = (Module("transformer.h.N.ln_1", ("layers.N.norm",)),)
ATTENTION = (
    Module("transformer.h.N.attn.q_proj", ("layers.N.attention.q",)),
    Module("transformer.h.N.attn.k_proj", ("layers.N.attention.k",)),
    Module("transformer.h.N.attn.v_proj", ("layers.N.attention.v",)),
    Module("transformer.h.N.attn.out_proj", ("layers.N.attention.o",)),
)
FFN = (
    Module("transformer.h.N.mlp.fc_in", ("layers.N.ffn.up",)),
    Module("transformer.h.N.mlp.fc_out", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **gpt2.CONFIG,
    "layers": Key("n_layer"),
    "norm.placement": "parallel",
    "position.kind": "rope",
    "position.base": 10000.0,
    "position.pairing": "interleaved",
    "position.partial": lambda c: share(c.rotary_dim, c.n_embd // c.n_head),
    "attention.bias": "none",
    "attention.scale": None,
    "logits.bias": True,
}

FAMILY = Family(
    "gptj",
    gpt2.ENDS + NORM + ATTENTION + FFN,
    ignored=("transformer.h.N.attn.bias", "transformer.h.N.attn.masked_bias"),
    tier="dense",
    config=CONFIG,
)
