"""glm4: glm with norms on both sides of each branch (transformers 5.24, models/glm4/modeling_glm4.py)."""

from archc.families import glm
from archc.families.base import Family, Table

CONFIG: Table = {**glm.CONFIG, "norm.placement": "sandwich"}

FAMILY = Family("glm4", config=CONFIG)
