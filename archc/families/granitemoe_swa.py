"""granitemoe_swa: granite_swa with granitemoeshared's experts (transformers 5.24, models/granitemoe_swa)."""

from archc.families import granite_swa, granitemoeshared
from archc.families.base import Family, Table
from archc.families.common import without

CONFIG: Table = {**without(granite_swa.CONFIG, "ffn"), "ffn": granitemoeshared.CONFIG["ffn"]}

FAMILY = Family("granitemoe_swa", config=CONFIG)
