"""cwm: llama with a window on three layers of four (transformers 5.24, models/cwm/modeling_cwm.py)."""

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import window

CONFIG: Table = {**llama.CONFIG, "attention.bias": "none", "attention.window": window}

FAMILY = Family("cwm", llama.FAMILY.rules, tier="dense", config=CONFIG)
