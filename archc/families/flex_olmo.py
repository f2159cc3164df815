"""flex_olmo: norms on branch outputs and over all heads, experts (transformers 5.24, models/flex_olmo)."""

from archc.families import llama, olmo2, olmoe
from archc.families.base import Family, Table
from archc.families.common import ROUTED_EXPERTS, rope

CONFIG: Table = {
    **olmoe.CONFIG,
    "position": lambda c: rope(c, float32="all"),
    "norm.placement": "post",
    "attention.clip": None,
}

FAMILY = Family(
    "flex_olmo",
    llama.ENDS + llama.ATTENTION + llama.QK_NORM + olmo2.POST_NORMS + ROUTED_EXPERTS,
    tier="mixture",
    config=CONFIG,
)
