"""mamba: one selective scan per layer and nothing else (transformers 5.24, models/mamba/modeling_mamba.py)."""

from archc.families.base import Family, Key, Table
from archc.families.common import activation
from archc.importing.translate import NULL

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": 2048,  # no key states it: Gu & Dao (2023) trained at this length
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("num_hidden_layers"),
    "norm.kind": "rmsnorm",
    "norm.eps": Key("layer_norm_epsilon"),
    "residual.float32": lambda c: c.residual_in_fp32 or None,
    "mixer.kind": "mamba",
    "mixer.width": Key("intermediate_size"),
    "mixer.state": Key("state_size"),
    "mixer.rank": Key("time_step_rank"),
    "mixer.kernel": Key("conv_kernel"),
    "mixer.activation": activation("hidden_act"),
    "mixer.bias": Key("use_bias"),
    "mixer.conv_bias": Key("use_conv_bias"),
    "ffn": NULL,
}

FAMILY = Family("mamba", tier="hybrid", config=CONFIG)
