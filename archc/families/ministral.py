"""ministral: mistral with a window where layer_types says so (transformers 5.24, models/ministral)."""

from archc.families import mistral
from archc.families.base import Family, Table
from archc.families.common import window

CONFIG: Table = {**mistral.CONFIG, "attention.window": window, "attention.window_rows": None}

FAMILY = Family("ministral", mistral.FAMILY.rules, tier="dense", config=CONFIG)
