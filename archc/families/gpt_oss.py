"""gpt_oss: sinks, biases everywhere, a limited and shifted product (transformers 5.24, models/gpt_oss)."""

from archc.families import llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import SINKS, moe, window, without

STACKED_EXPERTS = (
    Module("model.layers.N.mlp.router", ("layers.N.ffn.router",)),
    Parameter(
        "model.layers.N.mlp.experts.gate_up_proj",
        ("layers.N.ffn.gate", "layers.N.ffn.up"),
        transposed=True,
        groups="rows",
        stacked=True,
    ),
    Parameter(
        "model.layers.N.mlp.experts.gate_up_proj_bias",
        ("layers.N.ffn.gate_bias", "layers.N.ffn.up_bias"),
        groups="rows",
        stacked=True,
    ),
    Parameter("model.layers.N.mlp.experts.down_proj", ("layers.N.ffn.down",), transposed=True, stacked=True),
    Parameter("model.layers.N.mlp.experts.down_proj_bias", ("layers.N.ffn.down_bias",), stacked=True),
)

EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False, "bias": True},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
    bias="experts",
    glu={"limit": Key("swiglu_limit"), "slope": Key("swiglu_alpha"), "up_shift": 1.0},
)
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "attention.sinks": "column",
    "attention.window": window,
    "ffn": {**EXPERTS, "activation": "silu"},
}

FAMILY = Family(
    "gpt_oss", llama.ENDS + llama.ATTENTION + SINKS + llama.PRE_NORMS + STACKED_EXPERTS, tier="mixture", config=CONFIG
)
