"""beam: gated heads, a residual weighed by depth, experts (transformers 5.24, models/beam/modeling_beam.py)."""

from typing import Any

from archc.families import deepseek_v3, llama
from archc.families.base import Family, Key, Table
from archc.families.common import gated, moe, rope, window, without

EXPERTS = moe(deepseek_v3.ROUTER)


def turns(c: Any) -> bool:
    """Whether heads turn on the layer in question; where they do not, queries grow with their position."""
    return c.rope_parameters[c.layer_types[c.layer]] is not None


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.placement": "sandwich",
    "position": lambda c: rope(c, c.layer_types[c.layer]) if turns(c) else {"kind": "none"},
    "attention.qk_norm.over": "head",
    "attention.window": window,
    "attention.gate": {"over": "element", "head_bias": True},
    "attention.query_scale": lambda c: (
        None if turns(c) else {"form": "power", "strength": 0.1, "length": 2048, "first": 1}
    ),
    "residual.by_depth": True,
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else gated(),
    "logits.softcap": Key("final_logit_softcapping"),
}

FAMILY = Family("beam", config=CONFIG)
