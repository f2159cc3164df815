"""aria_text: llama with experts and shared ones as one (transformers 5.24, models/aria/modeling_aria.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import EMPTY_SHARED, activation, moe, shared_ffn, without

STACKED_EXPERTS = (
    Module("model.layers.N.mlp.router", ("layers.N.ffn.router",)),
    Parameter(
        "model.layers.N.mlp.experts.fc1.weight",
        ("layers.N.ffn.gate", "layers.N.ffn.up"),
        transposed=True,
        stacked=True,
    ),
    Parameter("model.layers.N.mlp.experts.fc2.weight", ("layers.N.ffn.down",), transposed=True, stacked=True),
)


def shared(c: Any) -> Table | None:
    """The shared experts, the only ones that mlp_bias is for."""
    if not c.moe_num_shared_experts and not c.mlp_bias:
        return None
    return {"width": lambda c: c.moe_num_shared_experts * c.intermediate_size, "bias": Key("mlp_bias")}


EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False},
    experts=Key("moe_num_experts"),
    top_k=Key("moe_topk"),
    width=Key("intermediate_size"),
    activation="silu",
    shared=shared,
)


def undeclared(c: Any) -> list[str] | None:
    """The activation that the config states, which is that of the shared experts alone."""
    found = activation("hidden_act")(c)
    return None if found == "silu" else [f"the activation of the shared experts is {found}"]


CONFIG: Table = {**without(llama.CONFIG, "ffn"), "ffn": EXPERTS, "undeclared": undeclared}

FAMILY = Family(
    "aria_text",
    llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + STACKED_EXPERTS + shared_ffn("mlp.shared_experts"),
    empty=EMPTY_SHARED,
    tier="mixture",
    config=CONFIG,
)
