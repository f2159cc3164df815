"""opt: learned positions from the third row on (transformers 5.24, models/opt/modeling_opt.py)."""

from archc.families import biogpt
from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, qkvo

CONFIG: Table = {
    **biogpt.CONFIG,
    "embedding.scale": None,
    "embedding.scale_rounded": None,
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

ENDS = (
    Module("model.decoder.embed_tokens", ("embedding",)),
    Module("model.decoder.project_in", ("embedding_projection",)),
    Module("model.decoder.embed_positions", ("position_embedding",)),
    Module("model.decoder.final_layer_norm", ("final_norm",)),
    Module("model.decoder.project_out", ("head_projection",)),
    Module("lm_head", ("head",)),
)
POST_NORMS = (
    Module("model.decoder.layers.N.self_attn_layer_norm", ("layers.N.attention_post_norm",)),
    Module("model.decoder.layers.N.final_layer_norm", ("layers.N.ffn_post_norm",)),
)

FAMILY = Family(
    "opt",
    ENDS + biogpt.layers("model.decoder") + POST_NORMS,
    optional_prefix="model.",
    tier="dense",
    config=CONFIG,
    keeps_head=True,
)
