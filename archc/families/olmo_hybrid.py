"""olmo_hybrid: olmo with gated delta nets (transformers 5.24, models/olmo_hybrid/modeling_olmo_hybrid.py)."""

from typing import Any

from archc.families import bamba, jamba, llama, qwen3_next
from archc.families.base import Family, Table
from archc.families.common import gated, rope, without

ATTENTION: Table = {**bamba.ATTENTION, "qk_norm": {"over": "width"}}
MIXER: Table = {
    **qwen3_next.MIXER,
    "write_scale": lambda c: 2.0 if c.linear_allow_neg_eigval else None,
    "output_norm": {"eps": 1e-5},
}


def position(c: Any) -> Table:
    """The section `position`; configs without a base do not turn heads."""
    return {"kind": "none"} if c.rope().get("rope_theta") is None else rope(c, float32="all")


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "norm.placement": lambda c: "post" if jamba.attends(c) else "pre",
    "position": position,
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": lambda c: None if jamba.attends(c) else MIXER,
    "ffn": gated(),
}

FAMILY = Family("olmo_hybrid", tier="hybrid", config=CONFIG)
