"""hunyuan_v1_dense: queries and keys normed once they have turned (transformers 5.24, models/hunyuan_v1_dense)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Module, Table
from archc.families.common import rope

QK_NORM = (
    Module("model.layers.N.self_attn.query_layernorm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.self_attn.key_layernorm", ("layers.N.attention.k_norm",)),
)


def position(c: Any) -> dict[str, Any]:
    """Rotary positions; dynamic ones with an alpha are those of a fixed, larger base."""
    found = c.rope()
    if found.get("rope_type") == "dynamic" and found.get("alpha"):
        return rope(c, scaling={"kind": "ntk_alpha", "alpha": lambda c: float(c.rope()["alpha"])})
    return rope(c)


CONFIG: Table = {
    **llama.CONFIG,
    "position": position,
    "attention.qk_norm": {"over": "head", "order": "after_rope"},
    "ffn.bias": False,
}


def _rope_parameters(o: Any) -> dict[str, Any] | None:
    """Those with an alpha, which they call dynamic; the others are as everybody writes them."""
    if o.first("position.scaling.kind") != "ntk_alpha":
        return None
    alpha, base = o.first("position.scaling.alpha"), o.first("position.base")
    return {"rope_type": "dynamic", "rope_theta": base, "alpha": alpha, "factor": 1.0}


INVERSE: Inverse = {"rope_parameters": _rope_parameters}

FAMILY = Family("hunyuan_v1_dense", llama.FAMILY.rules + QK_NORM, tier="twisted", config=CONFIG, inverse=INVERSE)
