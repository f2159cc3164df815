"""phi4_multimodal: phi3 (transformers 5.24, models/phi4_multimodal/modeling_phi4_multimodal.py)."""

from archc.families import phi3
from archc.families.base import Family

FAMILY = Family("phi4_multimodal", tier="dense", config=phi3.CONFIG, beside="its encoders of images and sounds")
