"""git: norms of the whole stream behind each branch, and of the embedding (transformers 5.24, models/git)."""

from archc.families import biogpt
from archc.families.base import Family, Key, Table
from archc.families.common import layernorm

CONFIG: Table = {
    **biogpt.CONFIG,
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": "post_sum",
    "embedding.scale": None,
    "embedding.scale_rounded": None,
    "embedding.norm": True,
    "position": {"kind": "learned"},
    "final_norm": False,
    "logits.bias": True,
}

FAMILY = Family("git", tier="dense", config=CONFIG, beside="its encoder of images")
