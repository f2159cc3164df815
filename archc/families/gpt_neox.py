"""gpt_neox: both branches side by side, each with its norm (transformers 5.24, models/gpt_neox)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Module, Table
from archc.families.common import layernorm, partial_rope


def _head_dim(c: Any) -> None:
    """The class has no such key. Its frequencies go by one all the same, and its heads do not."""
    if c.get("head_dim") not in (None, c.hidden_size // c.num_attention_heads):
        raise ValueError("its heads are hidden_size / num_attention_heads wide, so head_dim must be that")


CONFIG: Table = {
    **llama.CONFIG,
    "position": partial_rope,
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": lambda c: "parallel_separate" if c.use_parallel_residual else "pre",
    "attention.kv_heads": None,
    "attention.head_dim": _head_dim,
    "ffn.kind": "mlp",
    "ffn.bias": True,
}


def matrices(layer: str, attention: str) -> tuple[Module, ...]:
    """Those of a layer, where queries, keys and values of each key/value head stand together."""
    return (
        Module(
            f"{layer}.{attention}.query_key_value",
            ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
            groups="kv_heads",
        ),
        Module(f"{layer}.{attention}.dense", ("layers.N.attention.o",)),
        Module(f"{layer}.mlp.dense_h_to_4h", ("layers.N.ffn.up",)),
        Module(f"{layer}.mlp.dense_4h_to_h", ("layers.N.ffn.down",)),
    )


ENDS_AND_NORMS = (
    Module("gpt_neox.embed_in", ("embedding",)),
    Module("gpt_neox.layers.N.input_layernorm", ("layers.N.attention_norm",)),
    Module("gpt_neox.layers.N.post_attention_layernorm", ("layers.N.ffn_norm",)),
    Module("gpt_neox.final_layer_norm", ("final_norm",)),
    Module("embed_out", ("head",)),
)

FAMILY = Family(
    "gpt_neox",
    ENDS_AND_NORMS + matrices("gpt_neox.layers.N", "attention"),
    ignored=(
        "gpt_neox.layers.N.attention.bias",
        "gpt_neox.layers.N.attention.masked_bias",
        "gpt_neox.layers.N.attention.rotary_emb.inv_freq",
    ),
    tier="dense",
    config=CONFIG,
)
