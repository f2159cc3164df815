"""jais2: llama with layer norms and a plain feed-forward (transformers 5.24, models/jais2/modeling_jais2.py)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import layernorm

CONFIG: Table = {**llama.CONFIG, **layernorm(Key("layer_norm_eps")), "ffn.kind": "mlp"}

FAMILY = Family("jais2", llama.FAMILY.rules, tier="dense", config=CONFIG)
