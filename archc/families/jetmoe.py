"""jetmoe: experts for queries, outputs and feed-forwards (transformers 5.24, models/jetmoe/modeling_jetmoe.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import activation, block_with_eps, moe, without

ROUTER: Table = {"score": "softmax", "order": "top_k_then_score", "renormalize": False}
CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "block": block_with_eps(1e-6, "rms_norm_eps"),
    "attention": {
        "kind": "routed",
        "experts": Key("num_local_experts"),
        "top_k": Key("num_experts_per_tok"),
        "kv_heads": Key("num_key_value_heads"),
        "head_dim": Key("kv_channels"),
        "router": ROUTER,
        "bias": True,
    },
    "ffn": moe(
        ROUTER,
        experts=Key("num_local_experts"),
        width=Key("intermediate_size"),
        activation=activation("activation_function"),
        bias="sum",
    ),
}

ROUTED_ATTENTION = (
    Module("model.layers.N.self_attention.kv_proj", ("layers.N.attention.k", "layers.N.attention.v")),
    Module("model.layers.N.self_attention.experts.router.layer", ("layers.N.attention.router",)),
    Parameter("model.layers.N.self_attention.experts.input_linear.weight", ("layers.N.attention.q",), stacked=True),
    Parameter("model.layers.N.self_attention.experts.output_linear.weight", ("layers.N.attention.o",), stacked=True),
    Parameter("model.layers.N.self_attention.experts.bias", ("layers.N.attention.bias",)),
)
STACKED_EXPERTS = (
    Module("model.layers.N.mlp.router.layer", ("layers.N.ffn.router",)),
    Parameter("model.layers.N.mlp.input_linear.weight", ("layers.N.ffn.gate", "layers.N.ffn.up"), stacked=True),
    Parameter("model.layers.N.mlp.output_linear.weight", ("layers.N.ffn.down",), stacked=True),
    Parameter("model.layers.N.mlp.bias", ("layers.N.ffn.bias",)),
)

FAMILY = Family(
    "jetmoe", llama.ENDS + ROUTED_ATTENTION + llama.PRE_NORMS + STACKED_EXPERTS, tier="mixture", config=CONFIG
)
