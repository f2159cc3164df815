"""doge: a mask made of the values, weighted residuals (transformers 5.24, models/doge/modeling_doge.py)."""

from typing import Any

from archc.families import llama, mistral
from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import activation, head_dim, without


def _ffn(c: Any) -> Table:
    """A gated feed-forward, with a pool of experts beside it if asked for."""
    dense: Table = {
        "kind": "gated",
        "activation": activation("hidden_act"),
        "width": Key("intermediate_size"),
        "bias": Key("mlp_bias"),
    }
    if not c.is_moe:
        return dense
    pool = {"experts": Key("num_experts"), "top_k": Key("num_experts_per_tok"), "renormalize": Key("norm_topk_prob")}
    return {**dense, "kind": "product_keys", **pool}


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "attention.head_dim": head_dim,
    "attention.window": Key("sliding_window"),
    "attention.window_rows": mistral.window_rows,
    "attention.qk_norm.over": "head",
    "attention.dynamic_mask": {"keep": Key("keep_window_size"), "bias": Key("attention_bias")},
    "ffn": _ffn,
    "residual.learned": "stream",
    "undeclared": lambda c: (
        ["the scores of experts mix tokens: they are read as [2, tokens, keys]"] if c.is_moe else None
    ),
}

MASK = (
    Module("model.layers.N.self_attn.dt_proj", ("layers.N.attention.mask",)),
    Parameter("model.layers.N.self_attn.A", ("layers.N.attention.mask_strength",)),
)
RESIDUALS = (
    Parameter("model.layers.N.input_residual", ("layers.N.attention_residual.weight",)),
    Parameter("model.layers.N.post_attention_residual", ("layers.N.ffn_residual.weight",)),
)
POOL = (
    Module("model.layers.N.mlp.router_gate", ("layers.N.ffn.router",)),
    Parameter("model.layers.N.mlp.down_embed.weight", ("layers.N.ffn.experts.down",)),
    Parameter("model.layers.N.mlp.up_embed.weight", ("layers.N.ffn.experts.up",)),
)

FAMILY = Family("doge", llama.FAMILY.rules + llama.QK_NORM + MASK + RESIDUALS + POOL, tier="twisted", config=CONFIG)
