"""gpt_bigcode: gpt2 with one key/value head (transformers 5.24, models/gpt_bigcode/modeling_gpt_bigcode.py)."""

from archc.families import gpt2, gpt_neo
from archc.families.base import Family, Module, Table

ATTENTION = (
    Module(
        "transformer.h.N.attn.c_attn",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
        groups="kv_heads",
    ),
    Module("transformer.h.N.attn.c_proj", ("layers.N.attention.o",)),
)

CONFIG: Table = {
    **gpt2.CONFIG,
    "attention.kv_heads": lambda c: 1 if c.multi_query else c.n_head,
    "attention.scale": lambda c: None if c.scale_attn_weights else 1.0,
}

FAMILY = Family("gpt_bigcode", gpt2.ENDS + gpt2.NORMS + ATTENTION + gpt_neo.FFN, tier="dense", config=CONFIG)
