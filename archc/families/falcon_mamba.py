"""falcon_mamba: mamba with norms inside the scan (transformers 5.24, models/falcon_mamba/modeling_falcon_mamba.py)."""

from archc.families import mamba
from archc.families.base import Family, Key, Table

CONFIG: Table = {
    **mamba.CONFIG,
    "context": 8192,  # no key states it: Zuo et al. (2024) trained up to this length
    "mixer.inner_norm": {"eps": Key("mixer_rms_eps"), "weight": "none"},
}

FAMILY = Family("falcon_mamba", tier="hybrid", config=CONFIG)
