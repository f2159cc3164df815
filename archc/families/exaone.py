"""exaone: the class of llama, its tensors under names of their own (transformers 5.24, conversion_mapping.py)."""

from archc.families import gpt2, gpt_neo, llama
from archc.families.base import Family, Module

GATED_FFN = (
    Module("transformer.h.N.mlp.c_fc_0", ("layers.N.ffn.gate",)),
    Module("transformer.h.N.mlp.c_fc_1", ("layers.N.ffn.up",)),
    Module("transformer.h.N.mlp.c_proj", ("layers.N.ffn.down",)),
)

FAMILY = Family("exaone", gpt2.ENDS + gpt2.NORMS + gpt_neo.ATTENTION + GATED_FFN, tier="dense", config=llama.CONFIG)
