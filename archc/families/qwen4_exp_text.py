"""qwen4_exp_text: delta nets and chosen blocks of keys between several streams, hashed n-grams
(transformers 5.24, models/qwen4_exp/modeling_qwen4_exp.py).
"""

from itertools import islice
from math import ceil, isqrt
from typing import Any

from archc.families import qwen2_moe, qwen3_5_moe_text, qwen3_next
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import without
from archc.importing.translate import NULL

_INDEXER: Table = {
    "top_k": lambda c: c.indexer_budget // c.indexer_compress_ratio,
    "heads": Key("indexer_n_heads"),
    "head_dim": Key("indexer_head_dim"),
    "score": "relu",
    "key_norm": {},
    "query_norm": {},
    "block": Key("indexer_compress_ratio"),
    "block_score": "mean_key",
}
_ATTENTION: Table = {**qwen3_next.ATTENTION, "indexer": _INDEXER}
_MIXER: Table = {**qwen3_next.MIXER, "gate": lambda c: c.output_gate_type or c.hidden_act}


def _rows(c: Any) -> int:
    """Rows of all hash functions: each has the next prime for itself, counted on from layer to layer."""
    functions = (c.ngram_size - 1) * c.heads_per_ngram
    first = c.ple_layer_ids.index(c.layer + 1) * functions
    numbers = range(c.ngram_vocab_size_base, 2 * c.ngram_vocab_size_base + 1000 * (first + functions))
    primes = (n for n in numbers if n > 1 and all(n % divisor for divisor in range(2, isqrt(n) + 1)))
    divisor: int = c.make_ngram_vocab_size_divisible_by
    return ceil(sum(islice(primes, first, first + functions)) / divisor) * divisor


_NGRAM: Table = {
    "kind": "ngram",
    "order": Key("ngram_size"),
    "heads": Key("heads_per_ngram"),
    "rows": _rows,
    "width": Key("ple_embed_dim"),
    "kernel": Key("ple_conv_kernel_size"),
    "boundary": lambda c: c.eos_token_id[0] if isinstance(c.eos_token_id, list) else c.eos_token_id,
}


def _block(c: Any) -> list[dict[str, Source]]:
    hashed: list[dict[str, Source]] = [{"mixer": _NGRAM, "reads": "streams"}] if c.layer + 1 in c.ple_layer_ids else []
    linear = c.layer_types[c.layer] == "linear_attention"
    return [*hashed, {"mixer": _MIXER} if linear else {"attention": _ATTENTION}, {"ffn": qwen2_moe.EXPERTS}]


CONFIG: Table = {
    **without(qwen3_5_moe_text.CONFIG, "attention", "mixer", "ffn"),
    "final_norm": False,
    "streams": {"kind": "gated", "count": Key("hc_count"), "rank": Key("hc_lowrank")},
    "block": lambda c: [{**branch, "norm": NULL} for branch in _block(c)],
}


def _budget(o: Any) -> int:
    found: int = o.first("attention.indexer.top_k") * o.first("attention.indexer.block")
    return found


INVERSE: Inverse = {
    "head_dim": lambda o: o.first("attention.head_dim"),
    "indexer_n_heads": lambda o: o.first("attention.indexer.heads"),
    "indexer_kv_heads": lambda o: 1,
    "indexer_head_dim": lambda o: o.first("attention.indexer.head_dim"),
    "indexer_compress_ratio": lambda o: o.first("attention.indexer.block"),
    "indexer_budget": _budget,
    "ple_layer_ids": lambda o: [i for i, kind in enumerate(o.column("mixer.kind"), 1) if kind == "ngram"],
}

FAMILY = Family("qwen4_exp_text", tier="exotic", config=CONFIG, inverse=INVERSE)
