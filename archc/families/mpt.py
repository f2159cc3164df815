"""mpt: distances instead of positions, no biases (transformers 5.24, models/mpt/modeling_mpt.py).

What its class does not read has no part in this: alibi, alibi_bias_max and qk_ln of attn_config, expansion_ratio.
"""

from typing import Any

from archc.families.base import Family, Key, Module, Table


def _context(c: Any) -> int:
    """The columns of the table of distances; a single one would broadcast, as if there were no distances."""
    if c.max_seq_len == 1:
        raise ValueError("max_seq_len is 1, a table of distances that its class spreads over all keys")
    found: int = c.max_seq_len
    return found


def _scale(c: Any) -> float | None:
    scale = c.section("attn_config").softmax_scale
    return None if scale is None else float(scale)


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("d_model"),
    "context": _context,
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("n_layers"),
    "norm.kind": "layernorm",
    "norm.eps": Key("layer_norm_epsilon"),
    "norm.placement": "pre",
    "position.kind": "alibi",
    "attention.heads": Key("n_heads"),
    "attention.scale": _scale,
    "attention.clip": lambda c: c.section("attn_config").clip_qkv or None,
    "ffn.kind": "mlp",
    "ffn.activation": "gelu",
    "ffn.width": lambda c: 4 * c.d_model,
}

RULES = (
    Module("transformer.wte", ("embedding",)),
    Module("transformer.blocks.N.norm_1", ("layers.N.attention_norm",)),
    Module(
        "transformer.blocks.N.attn.Wqkv",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
    ),
    Module("transformer.blocks.N.attn.out_proj", ("layers.N.attention.o",)),
    Module("transformer.blocks.N.norm_2", ("layers.N.ffn_norm",)),
    Module("transformer.blocks.N.ffn.up_proj", ("layers.N.ffn.up",)),
    Module("transformer.blocks.N.ffn.down_proj", ("layers.N.ffn.down",)),
    Module("transformer.norm_f", ("final_norm",)),
    Module("lm_head", ("head",)),
)

FAMILY = Family("mpt", RULES, tier="twisted", config=CONFIG)
