"""flex_olmo: norms on branch outputs and over all heads, experts (transformers 5.24, models/flex_olmo)."""

from archc.families import olmoe
from archc.families.base import Family, Table

CONFIG: Table = {**olmoe.CONFIG, "norm.placement": "post", "attention.clip": None}

FAMILY = Family("flex_olmo", config=CONFIG)
