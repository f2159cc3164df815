"""bamba: mamba2 with attention on some layers (transformers 5.24, models/bamba/modeling_bamba.py)."""

from archc.families import jamba, llama, mamba2
from archc.families.base import Family, Table
from archc.families.common import qkvo, without

ATTENTION: Table = {**jamba.ATTENTION, "bias": lambda c: qkvo(*[c.attention_bias] * 4)}

CONFIG: Table = {
    **without(llama.CONFIG, "attention"),
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": lambda c: None if jamba.attends(c) else mamba2.MIXER,
}

FAMILY = Family("bamba", config=CONFIG, inverse={"mamba_expand": mamba2.expansion})
