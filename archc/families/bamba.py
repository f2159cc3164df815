"""bamba: mamba2 with attention on some layers (transformers 5.24, models/bamba/modeling_bamba.py)."""

from archc.families import jamba, llama, mamba2
from archc.families.base import Family, Inverse, Table
from archc.families.common import partial_rope, qkvo, without

ATTENTION: Table = {**jamba.ATTENTION, "bias": lambda c: qkvo(*[c.attention_bias] * 4)}

CONFIG: Table = {
    **without(llama.CONFIG, "attention"),
    "position": partial_rope,
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": lambda c: None if jamba.attends(c) else mamba2.MIXER,
}

INVERSE: Inverse = {
    "attn_layer_indices": lambda o: [i for i, heads in enumerate(o.column("attention.heads")) if heads],
    "mamba_expand": mamba2.expansion,
}

FAMILY = Family("bamba", tier="hybrid", config=CONFIG, inverse=INVERSE)
