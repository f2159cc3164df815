"""codegen: gptj with fused projections (transformers 5.24, models/codegen/modeling_codegen.py)."""

from archc.families import gpt2, gptj
from archc.families.base import Family, Module, Table

# In four groups, those of the processors that it was trained on, and values before keys.
ATTENTION = (
    Module(
        "transformer.h.N.attn.qkv_proj",
        ("layers.N.attention.q", "layers.N.attention.v", "layers.N.attention.k"),
        groups=4,
    ),
    Module("transformer.h.N.attn.out_proj", ("layers.N.attention.o",)),
)

CONFIG: Table = {**gptj.CONFIG, "position.float32": "all"}

FAMILY = Family(
    "codegen",
    gpt2.ENDS + gptj.NORM + ATTENTION + gptj.FFN,
    ignored=("transformer.h.N.attn.causal_mask",),
    tier="twisted",
    config=CONFIG,
)
