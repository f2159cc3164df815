"""nemotron: layer norms with 1 + w, no gate (transformers 5.24, models/nemotron/modeling_nemotron.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import layernorm, partial_rope

CONFIG: Table = {
    **llama.CONFIG,
    "position": partial_rope,
    **layernorm(Key("norm_eps")),
    "norm.weight": "one_plus",
    "ffn.kind": "mlp",
}

FAMILY = Family("nemotron", llama.FAMILY.rules, tier="dense", config=CONFIG)
