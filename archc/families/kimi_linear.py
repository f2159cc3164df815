"""kimi_linear: Kimi delta attention, now and then latent attention, experts (transformers 5.24, models/kimi_linear)."""

from typing import Any

from archc.families import deepseek_v3, jamba
from archc.families.base import Family, Key, Table
from archc.families.common import activation, without

MIXER: Table = {
    "kind": "kda",
    "heads": Key("linear_num_heads"),
    "head_dim": Key("linear_head_dim"),
    "kernel": Key("linear_conv_kernel_dim"),
    "activation": activation("hidden_act"),
    "gate": "sigmoid",
}
ATTENTION: Table = {
    path.removeprefix("attention."): source
    for path, source in deepseek_v3.LATENT.items()
    if path.startswith("attention.") and path != "attention.latent_norm.eps"
} | {"latent_norm": {"eps": deepseek_v3.LATENT["attention.latent_norm.eps"]}}
EXPERTS: Table = {**deepseek_v3.EXPERTS, "experts": Key("num_local_experts")}


def ffn(c: Any) -> Table:
    """The feed-forward of a layer, by `mlp_layer_types`."""
    return EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else deepseek_v3.DENSE


CONFIG: Table = {
    **without(deepseek_v3.LATENT, "attention"),
    "embedding.tied": False,  # the class ties nothing, whatever tie_word_embeddings says
    "position": {"kind": "none"},
    "attention": lambda c: ATTENTION if jamba.attends(c) else None,
    "mixer": lambda c: (
        None
        if jamba.attends(c)
        else {**MIXER, "decay_rank": Key("linear_head_dim"), "gate_rank": Key("linear_head_dim")}
    ),
    "ffn": ffn,
}

FAMILY = Family("kimi_linear", tier="hybrid", config=CONFIG)
