"""granitemoe: granite with experts (transformers 5.24, models/granitemoe/modeling_granitemoe.py)."""

from archc.families import granite, llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import moe, without

STACKED_EXPERTS = (
    Module("model.layers.N.block_sparse_moe.router.layer", ("layers.N.ffn.router",)),
    Parameter(
        "model.layers.N.block_sparse_moe.input_linear.weight", ("layers.N.ffn.gate", "layers.N.ffn.up"), stacked=True
    ),
    Parameter("model.layers.N.block_sparse_moe.output_linear.weight", ("layers.N.ffn.down",), stacked=True),
)

EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
)
CONFIG: Table = {**without(granite.CONFIG, "ffn"), "ffn": EXPERTS}

FAMILY = Family(
    "granitemoe", llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + STACKED_EXPERTS, tier="mixture", config=CONFIG
)
