"""gpt2: fused and transposed Conv1D weights (transformers 5.24, models/gpt2/modeling_gpt2.py)."""

from typing import Any

from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, layernorm, self_attending

ENDS = (
    Module("transformer.wte", ("embedding",)),
    Module("transformer.wpe", ("position_embedding",)),
    Module("transformer.ln_f", ("final_norm",)),
    Module("lm_head", ("head",)),
)
NORMS = (
    Module("transformer.h.N.ln_1", ("layers.N.attention_norm",)),
    Module("transformer.h.N.ln_2", ("layers.N.ffn_norm",)),
)
TRANSPOSED = (
    Module(
        "transformer.h.N.attn.c_attn",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
        transposed=True,
    ),
    Module("transformer.h.N.attn.c_proj", ("layers.N.attention.o",), transposed=True),
    Module("transformer.h.N.mlp.c_fc", ("layers.N.ffn.up",), transposed=True),
    Module("transformer.h.N.mlp.c_proj", ("layers.N.ffn.down",), transposed=True),
)


def _scale(c: Any) -> float | None:
    """Of query-key products: 1 / sqrt(head_dim) unless switched off, and less with depth where that is switched on."""
    if c.scale_attn_weights and not c.scale_attn_by_inverse_layer_idx:
        return None
    scale: float = (c.n_embd // c.n_head) ** -0.5 if c.scale_attn_weights else 1.0
    return scale / (c.layer + 1) if c.scale_attn_by_inverse_layer_idx else scale


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("n_embd"),
    "context": Key("n_positions"),
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": self_attending("n_layer"),
    **layernorm(Key("layer_norm_epsilon")),
    "norm.placement": "pre",
    "position.kind": "learned",
    "attention.heads": Key("n_head"),
    "attention.bias": "all",
    "attention.scale": _scale,
    "ffn.kind": "mlp",
    "ffn.activation": activation("activation_function"),
    "ffn.width": lambda c: 4 * c.n_embd if c.n_inner is None else c.n_inner,
    "ffn.bias": True,
}

FAMILY = Family(
    "gpt2",
    ENDS + NORMS + TRANSPOSED,
    optional_prefix="transformer.",
    ignored=("transformer.h.N.attn.bias", "transformer.h.N.attn.masked_bias"),
    tier="dense",
    config=CONFIG,
)
