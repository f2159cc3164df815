"""axk2: deepseek_v32 with gated norms and a gated output (transformers 5.24, models/axk2/modeling_axk2.py)."""

from typing import Any

from archc.families import deepseek_v32
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.deepseek_v3 import DENSE, EXPERTS, ROUTER

_GATED = {"gate_rank": Key("gated_norm_rank")}


def _groups(c: Any) -> dict[str, Source] | None:
    if c.n_group is None:
        return None
    return {"count": Key("n_group"), "chosen": Key("topk_group"), "score": "top2_sum", "others": "zero"}


_EXPERTS: Table = {**EXPERTS, "router": {**ROUTER, "groups": _groups}}


def _block(c: Any) -> list[dict[str, Source]]:
    sparse = c.mlp_layer_types[c.layer] == "sparse"
    return [{"attention": {}, "norm": _GATED}, {"ffn": {}, **({"norm": _GATED} if sparse else {})}]


CONFIG: Table = {
    **deepseek_v32.CONFIG,
    "attention.q_latent": "normed_and_raw",
    "attention.gate": {"over": "element", "source": "latent"},
    "ffn": lambda c: _EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else DENSE,
    "block": _block,
}

INVERSE: Inverse = {
    "n_group": lambda o: o.first("ffn.router.groups.count"),
    "topk_group": lambda o: o.first("ffn.router.groups.chosen"),
}

FAMILY = Family("axk2", tier="latent", config=CONFIG, inverse=INVERSE)
