"""deepseek_v2: deepseek_v3 with a softmax router (transformers 5.24, models/deepseek_v2/modeling_deepseek_v2.py)."""

from typing import Any

from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import EMPTY_SHARED, rope
from archc.families.deepseek_v3 import DENSE, EXPERTS, LATENT, RULES


def _groups(c: Any) -> dict[str, Source] | None:
    if c.topk_method == "greedy":
        return None
    if c.topk_method != "group_limited_greedy":
        raise ValueError(f"topk_method {c.topk_method!r}")
    return {"count": Key("n_group"), "chosen": Key("topk_group"), "score": "max", "others": "zero"}


def _shared(c: Any) -> dict[str, Source] | None:
    if not c.n_shared_experts and not c.mlp_bias:
        return None
    return {"width": lambda c: c.moe_intermediate_size * c.n_shared_experts, "bias": Key("mlp_bias")}


_EXPERTS: Table = {
    **EXPERTS,
    "shared": _shared,
    "router": {
        "score": "softmax",
        "groups": _groups,
        "renormalize": False,
        "scale": lambda c: float(c.routed_scaling_factor),
        "float32": True,
    },
}
CONFIG: Table = {
    **LATENT,
    "position": lambda c: rope(c, pairing="interleaved", float32="all"),
    "ffn": lambda c: _EXPERTS if c.layer >= c.first_k_dense_replace else {**DENSE, "bias": Key("mlp_bias")},
}


def _method(o: Any) -> str:
    return "group_limited_greedy" if o.first("ffn.router.groups.count") else "greedy"


INVERSE: Inverse = {"topk_method": _method}

FAMILY = Family("deepseek_v2", RULES, empty=EMPTY_SHARED, tier="latent", config=CONFIG, inverse=INVERSE)
