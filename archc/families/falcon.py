"""falcon: three generations in one class (transformers 5.24, models/falcon/modeling_falcon.py)."""

from typing import Any

from archc.families import gpt_neox
from archc.families.base import Family, Inverse, Key, Module, Table
from archc.families.common import activation, layernorm, qkvo, rope


def _placement(c: Any) -> str:
    """Side by side in the newer generations, behind one norm or two."""
    if c.new_decoder_architecture:
        return "parallel" if c.num_ln_in_parallel_attn == 1 else "parallel_separate"
    return "parallel" if c.parallel_attn else "pre"


def _kv_heads(c: Any) -> int:
    """All heads share one, unless a generation says otherwise: in the oldest, each has its own."""
    if not c.new_decoder_architecture and c.multi_query:
        return 1
    found: int = c.num_kv_heads
    if not c.new_decoder_architecture and found != c.num_attention_heads:
        raise ValueError("num_kv_heads is not num_attention_heads, and new_decoder_architecture is off")
    return found


_ALIBI = [
    "distances are weighed in bfloat16, and added twice by eager attention: to the scores, and once more with the mask"
]

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("num_hidden_layers"),
    **layernorm(Key("layer_norm_epsilon")),
    "norm.placement": _placement,
    "position": lambda c: {"kind": "alibi", "scaled": True} if c.alibi else rope(c),
    "attention.heads": Key("num_attention_heads"),
    "attention.kv_heads": _kv_heads,
    "attention.bias": lambda c: qkvo(*[c.bias] * 4),
    "attention.reference_heads": lambda c: "heads" if c.new_decoder_architecture else None,
    "ffn.kind": "mlp",
    "ffn.activation": activation("activation"),
    "ffn.width": Key("ffn_hidden_size"),
    "ffn.bias": Key("bias"),
    "undeclared": lambda c: _ALIBI if c.alibi else None,
}

INVERSE: Inverse = {
    "new_decoder_architecture": lambda o: o.first("attention.reference_heads") == "heads",
    "multi_query": lambda o: o.first("attention.kv_heads") == 1,
    "num_kv_heads": lambda o: o.first("attention.kv_heads"),
    "num_ln_in_parallel_attn": lambda o: 1 if o.first("norm.placement") == "parallel" else 2,
    "parallel_attn": lambda o: o.first("norm.placement") != "pre",
}

ENDS = (
    Module("transformer.word_embeddings", ("embedding",)),
    Module("transformer.ln_f", ("final_norm",)),
    Module("lm_head", ("head",)),
)
NORMS = (
    Module("transformer.h.N.input_layernorm", ("layers.N.norm",)),
    Module("transformer.h.N.ln_attn", ("layers.N.attention_norm",), parallel=True),
    Module("transformer.h.N.ln_mlp", ("layers.N.ffn_norm",), parallel=True),
    Module("transformer.h.N.input_layernorm", ("layers.N.attention_norm",), parallel=False),
    Module("transformer.h.N.post_attention_layernorm", ("layers.N.ffn_norm",), parallel=False),
)

FAMILY = Family(
    "falcon",
    ENDS + NORMS + gpt_neox.matrices("transformer.h.N", "self_attention"),
    tier="twisted",
    config=CONFIG,
    inverse=INVERSE,
)
