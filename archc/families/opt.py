"""opt: learned positions from the third row on (transformers 5.24, models/opt/modeling_opt.py)."""

from archc.families import biogpt
from archc.families.base import Family, Key, Table
from archc.families.common import activation, qkvo

CONFIG: Table = {
    **biogpt.CONFIG,
    "embedding.scale": None,
    "embedding.width": lambda c: c.word_embed_proj_dim if c.word_embed_proj_dim != c.hidden_size else None,
    "norm.weight": lambda c: None if c.layer_norm_elementwise_affine else "none",
    "norm.bias": Key("layer_norm_elementwise_affine"),
    "norm.placement": lambda c: "pre" if c.do_layer_norm_before else "post_sum",
    "final_norm": lambda c: None if c.do_layer_norm_before and not c.get("_remove_final_layer_norm") else False,
    "attention.bias": lambda c: qkvo(*[c.enable_bias] * 4),
    "ffn.activation": activation("activation_function"),
    "ffn.width": Key("ffn_dim"),
    "ffn.bias": Key("enable_bias"),
}

FAMILY = Family("opt", config=CONFIG, keeps_head=True)
