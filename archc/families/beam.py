"""beam: gated heads, a residual weighed by depth, experts (transformers 5.24, models/beam/modeling_beam.py)."""

from typing import Any

from archc.families import afmoe, deepseek_v3, gemma2, llama
from archc.families.base import Family, Key, Parameter, Table
from archc.families.common import CORRECTION, ROUTED_EXPERTS, gated, moe, rope, window, without

GATE_BIAS = (Parameter("model.layers.N.self_attn.gate_bias", ("layers.N.attention.gate_bias",)),)

GLU: Table = {"float32": True}
EXPERTS = moe(deepseek_v3.ROUTER, glu=GLU)


def turns(c: Any) -> bool:
    """Whether heads turn on the layer in question; where they do not, queries grow with their position."""
    return c.rope_parameters[c.layer_types[c.layer]] is not None


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.placement": "sandwich",
    "position": lambda c: rope(c, c.layer_types[c.layer], float32="all") if turns(c) else {"kind": "none"},
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "attention.gate": {"over": "element", "head_bias": True},
    "attention.query_scale": lambda c: (
        None if turns(c) else {"form": "power", "strength": 0.1, "length": 2048, "first": 1}
    ),
    "residual.by_depth": True,
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(glu=GLU),
    "logits.softcap": Key("final_logit_softcapping"),
    "logits.float32": lambda c: None if c.final_logit_softcapping is None else True,
}

FAMILY = Family(
    "beam",
    llama.ENDS
    + llama.ATTENTION
    + llama.QK_NORM
    + afmoe.GATE
    + GATE_BIAS
    + gemma2.SANDWICH_NORMS
    + llama.GATED_FFN
    + ROUTED_EXPERTS
    + CORRECTION,
    tier="mixture",
    config=CONFIG,
)
