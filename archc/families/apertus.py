"""apertus: llama without a gate, activated by xIELU (transformers 5.24, models/apertus/modeling_apertus.py)."""

from archc.families import llama
from archc.families.base import Family, Module, Parameter, Table
from archc.families.common import head_dim

NORMS = (
    Module("model.layers.N.attention_layernorm", ("layers.N.attention_norm",)),
    Module("model.layers.N.feedforward_layernorm", ("layers.N.ffn_norm",)),
)
FFN = (
    Module("model.layers.N.mlp.up_proj", ("layers.N.ffn.up",)),
    Parameter("model.layers.N.mlp.act_fn.alpha_p", ("layers.N.ffn.activation.alpha_p",)),
    Parameter("model.layers.N.mlp.act_fn.alpha_n", ("layers.N.ffn.activation.alpha_n",)),
    Parameter("model.layers.N.mlp.act_fn.beta", ("layers.N.ffn.activation.beta",)),
    Parameter("model.layers.N.mlp.act_fn.eps", ("layers.N.ffn.activation.eps",)),
    Module("model.layers.N.mlp.down_proj", ("layers.N.ffn.down",)),
)

CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": head_dim,
    "attention.qk_norm.over": "head",
    "ffn.kind": "mlp",
    "ffn.bias": False,
}

FAMILY = Family("apertus", llama.ENDS + llama.ATTENTION + llama.QK_NORM + NORMS + FFN, tier="twisted", config=CONFIG)
