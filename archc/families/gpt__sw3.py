"""gpt-sw3: the class of gpt2 (transformers 5.24, models/auto/configuration_auto.py)."""

from archc.families import gpt2
from archc.families.base import Family

FAMILY = Family(
    "gpt-sw3",
    gpt2.FAMILY.rules,
    optional_prefix=gpt2.FAMILY.optional_prefix,
    ignored=gpt2.FAMILY.ignored,
    tier="dense",
    config=gpt2.CONFIG,
)
