"""vaultgemma: gemma2 without the norms on branch outputs (transformers 5.24, models/vaultgemma)."""

from archc.families import gemma2
from archc.families.base import Family, Table

CONFIG: Table = {**gemma2.CONFIG, "norm.placement": "pre", "undeclared": None}

FAMILY = Family("vaultgemma", gemma2.FAMILY.rules, tier="twisted", config=CONFIG)
