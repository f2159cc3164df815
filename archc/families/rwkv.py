"""rwkv: RWKV-4 (transformers 5.24, models/rwkv/modeling_rwkv.py)."""

from re import search
from typing import Any

from archc.families.base import Family, Key, Table
from archc.families.common import layernorm


def undeclared(c: Any) -> list[str] | None:
    """The stream is halved now and then, and what is added to it too: equal but for the eps of the norms."""
    every = c.rescale_every
    return (
        [f"for inference the stream, and what is added to it, is halved after every {every} layers"] if every else None
    )


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("context_length"),
    "embedding.tied": Key("tie_word_embeddings"),
    "embedding.norm": True,
    "layers": Key("num_hidden_layers"),
    **layernorm(Key("layer_norm_epsilon")),
    "final_norm_eps": lambda c: None if c.layer_norm_epsilon == 1e-5 else 1e-5,
    "mixer": {"kind": "rwkv", "width": Key("attention_hidden_size")},
    "ffn": {"kind": "channel_mix", "width": Key("intermediate_size")},
    "undeclared": undeclared,
}


def _rescale_every(o: Any) -> int:
    found = search(r"after every (\d+) layers", " ".join(o.header["undeclared"]))
    return int(found[1]) if found else 0


FAMILY = Family("rwkv", tier="hybrid", config=CONFIG, inverse={"rescale_every": _rescale_every})
