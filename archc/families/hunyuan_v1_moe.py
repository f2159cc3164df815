"""hunyuan_v1_moe: heads normed after they turn, experts (transformers 5.24, models/hunyuan_v1_moe)."""

from typing import Any

from archc.families import hunyuan_v1_dense, llama
from archc.families.base import Family, Key, Module, Table
from archc.families.common import SINGLE_EXPERTS, moe, shared_ffn, without


def per_layer(key: str) -> Any:
    """A number for all layers, or the one of the layer in question."""

    def read(c: Any) -> int:
        stated = getattr(c, key)
        found: int = stated if isinstance(stated, int) else stated[c.layer]
        return found

    return read


CONFIG: Table = {
    **without(hunyuan_v1_dense.CONFIG, "ffn"),
    "ffn": moe(
        {"score": "softmax", "renormalize": True, "float32": True},
        top_k=per_layer("moe_topk"),
        width=Key("intermediate_size"),
        shared={"width": Key("intermediate_size")},
    ),
}

ROUTER = (Module("model.layers.N.mlp.gate.wg", ("layers.N.ffn.router",)),)

FAMILY = Family(
    "hunyuan_v1_moe",
    llama.ENDS
    + llama.ATTENTION
    + hunyuan_v1_dense.QK_NORM
    + llama.PRE_NORMS
    + ROUTER
    + SINGLE_EXPERTS
    + shared_ffn("mlp.shared_mlp"),
    tier="mixture",
    config=CONFIG,
    inverse=hunyuan_v1_dense.INVERSE,
)
