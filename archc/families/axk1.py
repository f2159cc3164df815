"""axk1: deepseek_v3 with a norm on the output of the experts (transformers 5.24, models/axk1/modeling_axk1.py)."""

from typing import Any

from archc.families import deepseek_v3, glm4_moe_lite, llama
from archc.families.base import Family, Module, Source, Table
from archc.families.common import EMPTY_SHARED

POST_NORM = (Module("model.layers.N.post_mlp_layernorm", ("layers.N.ffn_post_norm",)),)


def _block(c: Any) -> list[dict[str, Source]] | None:
    if c.mlp_layer_types[c.layer] != "sparse":
        return None
    return [{"attention": {}}, {"ffn": {}, "norm": {"placement": "sandwich"}}]


CONFIG: Table = {**glm4_moe_lite.CONFIG, "block": _block}

FAMILY = Family(
    "axk1",
    deepseek_v3.RULES + POST_NORM,
    # Released checkpoints have this norm on dense layers, too, where it does nothing, and correct no scores.
    ignored=(*llama.OLD_BUFFERS, "model.layers.N.post_mlp_layernorm.weight"),
    zero=("model.layers.N.mlp.gate.e_score_correction_bias",),
    empty=EMPTY_SHARED,
    tier="latent",
    config=CONFIG,
)
