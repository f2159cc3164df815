"""lfm3: lfm2 with windows, output gates and more norms (transformers 5.24, models/lfm3/modeling_lfm3.py)."""

from typing import Any

from archc.families import bamba, lfm2
from archc.families.base import Family, Key, Table
from archc.families.common import rope, window

ATTENTION: Table = {
    **bamba.ATTENTION,
    "window": window,
    "qk_norm": {"over": "head"},
    "gate": lambda c: {"over": "head"} if c.use_attention_gate else None,
}


def position(c: Any) -> Table | None:
    """The section `position` of the layers with attention, a kind each."""
    return None if lfm2.convolves(c) else rope(c, c.layer_types[c.layer], float32="all")


CONFIG: Table = {
    **lfm2.CONFIG,
    "norm.placement": lambda c: "sandwich" if c.use_sandwich_norm else "pre",
    "position": position,
    "attention": lambda c: None if lfm2.convolves(c) else ATTENTION,
    "ffn": lfm2.gated(Key("intermediate_size")),
}

FAMILY = Family("lfm3", tier="hybrid", config=CONFIG)
