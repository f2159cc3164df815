"""muse_glimmer_text: gemma's norms, heads behind a gate (transformers 5.24, models/muse_glimmer)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import activation, rope, window

CONFIG: Table = {
    **llama.CONFIG,
    "norm.weight": "one_plus",
    "norm.placement": "sandwich",
    "position": lambda c: rope(c) if c.layer_rope_theta[c.layer] else {"kind": "none"},
    "attention.scale": lambda c: c.head_dim**-0.5 * c.qk_scale_factor,
    "attention.window": window,
    "attention.qk_norm": {"over": "head", "weight": "none"},
    "attention.gate.over": "element",
    "ffn.activation": activation("hidden_activation"),
    "ffn.bias": False,
    "logits.scale": Key("output_multiplier"),
    "logits.softcap": Key("final_logit_softcapping"),
    "undeclared": lambda c: [
        "embedded tokens pass through an rmsnorm without weight",
        "the final norm multiplies by w and not by 1 + w",
        f"norms behind a branch have the eps {c.post_norm_eps:g}",
    ],
}

FAMILY = Family("muse_glimmer_text", tier="twisted", config=CONFIG)
