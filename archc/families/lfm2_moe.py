"""lfm2_moe: lfm2 with experts behind the first layers (transformers 5.24, models/lfm2_moe/modeling_lfm2_moe.py)."""

from archc.families import lfm2
from archc.families.base import Family, Key, Table
from archc.families.common import moe

EXPERTS = moe(
    {
        "score": "sigmoid",
        "correction": lambda c: "buffer" if c.use_expert_bias else None,
        "renormalize": Key("norm_topk_prob"),
        "renormalize_eps": lambda c: 1e-6 if c.norm_topk_prob else None,
        "scale": lambda c: float(c.routed_scaling_factor),
    },
    activation="silu",
)

CONFIG: Table = {
    **lfm2.CONFIG,
    "ffn": lambda c: lfm2.gated(Key("intermediate_size")) if c.layer < c.num_dense_layers else EXPERTS,
}

FAMILY = Family("lfm2_moe", tier="hybrid", config=CONFIG)
