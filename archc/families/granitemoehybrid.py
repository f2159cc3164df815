"""granitemoehybrid: mamba2 or attention, then experts (transformers 5.24, models/granitemoehybrid)."""

from typing import Any

from archc.families import bamba, jamba, llama, mamba2
from archc.families.base import Family, Key, Table
from archc.families.common import exact_scale, factor, gated, moe, rope, without

EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
    shared={"width": Key("shared_intermediate_size")},
)


def attention(c: Any) -> Table | None:
    """The section `attention` of the layers that have it."""
    if not jamba.attends(c):
        return None
    return {**bamba.ATTENTION, "scale": lambda c: float(c.attention_multiplier)}


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    **exact_scale(factor("embedding_multiplier")),
    "logits.scale": lambda c: None if c.logits_scaling == 1 else 1 / c.logits_scaling,
    "residual.branch": factor("residual_multiplier"),
    "position": lambda c: rope(c) if c.position_embedding_type == "rope" else {"kind": "none"},
    "attention": attention,
    "mixer": lambda c: None if jamba.attends(c) else mamba2.MIXER,
    "ffn": lambda c: EXPERTS if c.num_local_experts > 0 else gated("shared_intermediate_size"),
}

FAMILY = Family("granitemoehybrid", tier="hybrid", config=CONFIG, inverse={"mamba_expand": mamba2.expansion})
