"""granitemoe_swa: granite_swa with granitemoeshared's experts (transformers 5.24, models/granitemoe_swa)."""

from archc.families import granite_swa, granitemoeshared, llama
from archc.families.base import Family, Module, Parameter, Table
from archc.families.common import SINKS, without

STACKED_EXPERTS = (
    Module("model.layers.N.block_sparse_moe.router", ("layers.N.ffn.router",)),
    Parameter(
        "model.layers.N.block_sparse_moe.experts.gate_up_proj", ("layers.N.ffn.gate", "layers.N.ffn.up"), stacked=True
    ),
    Parameter("model.layers.N.block_sparse_moe.experts.down_proj", ("layers.N.ffn.down",), stacked=True),
)

CONFIG: Table = {**without(granite_swa.CONFIG, "ffn"), "ffn": granitemoeshared.CONFIG["ffn"]}

FAMILY = Family(
    "granitemoe_swa",
    llama.ENDS + llama.ATTENTION + SINKS + llama.PRE_NORMS + STACKED_EXPERTS + granitemoeshared.SHARED,
    tier="mixture",
    config=CONFIG,
)
