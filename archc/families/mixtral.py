"""mixtral: llama with experts w1 (gate), w3 (up), w2 (down) (transformers 5.24, conversion_mapping.py)."""

from archc.families import llama
from archc.families.base import Family, Module, PerExpert

EXPERTS = (
    Module("model.layers.N.block_sparse_moe.gate", ("layers.N.ffn.router",)),
    PerExpert("model.layers.N.block_sparse_moe.experts.E.w1.weight", ("layers.N.ffn.gate",)),
    PerExpert("model.layers.N.block_sparse_moe.experts.E.w3.weight", ("layers.N.ffn.up",)),
    PerExpert("model.layers.N.block_sparse_moe.experts.E.w2.weight", ("layers.N.ffn.down",)),
)

FAMILY = Family("mixtral", llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + EXPERTS, ignored=llama.OLD_BUFFERS)
