"""olmoe: a norm over all heads, experts (transformers 5.24, models/olmoe/modeling_olmoe.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import ROUTED_EXPERTS, head_dim, moe, without

EXPERTS = moe({"score": "softmax", "renormalize": Key("norm_topk_prob")}, width=Key("intermediate_size"))
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "attention.head_dim": head_dim,
    "attention.clip": Key("clip_qkv"),
    "attention.qk_norm.over": "width",
    "ffn": EXPERTS,
}

FAMILY = Family(
    "olmoe",
    llama.ENDS + llama.ATTENTION + llama.QK_NORM + llama.PRE_NORMS + ROUTED_EXPERTS,
    tier="mixture",
    config=CONFIG,
)
