"""minimax_m2: partial rope, a norm over all heads, experts (transformers 5.24, models/minimax_m2)."""

from archc.families import llama, mixtral
from archc.families.base import Family, Key, Parameter, Table
from archc.families.common import moe, partial_rope, without

ROUTER: Table = {"score": "sigmoid", "correction": "buffer", "renormalize": True}
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "position": partial_rope,
    "attention.bias": "none",
    "attention.qk_norm.over": "width",
    "ffn": moe(ROUTER, experts=Key("num_local_experts"), width=Key("intermediate_size")),
}

CORRECTION = (Parameter("model.layers.N.block_sparse_moe.e_score_correction_bias", ("layers.N.ffn.correction",)),)

FAMILY = Family("minimax_m2", mixtral.FAMILY.rules + llama.QK_NORM + CORRECTION, tier="mixture", config=CONFIG)
