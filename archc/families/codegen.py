"""codegen: gptj with fused projections (transformers 5.24, models/codegen/modeling_codegen.py)."""

from archc.families import gptj
from archc.families.base import Family

FAMILY = Family("codegen", config=gptj.CONFIG)
