"""nanochat: norms that store nothing, heads that turn backward (transformers 5.24, models/nanochat)."""

from archc.families import llama, phi
from archc.families.base import Family, Key, Table
from archc.families.common import head_dim, rope

CONFIG: Table = {
    **llama.CONFIG,
    "embedding.norm": True,
    "norm.weight": "none",
    "position": lambda c: rope(c, direction="backward"),
    "attention.head_dim": head_dim,
    "attention.qk_norm": {"over": "head", "order": "after_rope"},
    "ffn.kind": "mlp",
    "ffn.bias": False,
    "logits.softcap": Key("final_logit_softcapping"),
}

FAMILY = Family("nanochat", llama.ENDS + llama.ATTENTION + phi.FFN, tier="twisted", config=CONFIG)
