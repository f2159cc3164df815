"""mixtral: llama with experts w1 (gate), w3 (up), w2 (down) (transformers 5.24, conversion_mapping.py)."""

from archc.families import llama, mistral
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import activation, without

EXPERTS = (
    Module("model.layers.N.block_sparse_moe.gate", ("layers.N.ffn.router",)),
    Parameter("model.layers.N.block_sparse_moe.experts.E.w1.weight", ("layers.N.ffn.gate",)),
    Parameter("model.layers.N.block_sparse_moe.experts.E.w3.weight", ("layers.N.ffn.up",)),
    Parameter("model.layers.N.block_sparse_moe.experts.E.w2.weight", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **without(mistral.CONFIG, "ffn"),
    "ffn.kind": "moe",
    "ffn.experts": Key("num_local_experts"),
    "ffn.top_k": Key("num_experts_per_tok"),
    "ffn.width": Key("intermediate_size"),
    "ffn.activation": activation("hidden_act"),
    "ffn.router": {"score": "softmax", "renormalize": True},
}

FAMILY = Family(
    "mixtral",
    llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + EXPERTS,
    ignored=llama.OLD_BUFFERS,
    tier="mixture",
    config=CONFIG,
    inverse=mistral.INVERSE,
)
