"""reformer: chunks of near or like positions, between two streams (transformers 5.24, models/reformer)."""

from typing import Any

from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import activation, layernorm


def _position(c: Any) -> dict[str, Source]:
    if not c.axial_pos_embds:
        return {"kind": "learned"}
    if len(c.axial_pos_shape) != 2 or sum(c.axial_pos_embds_dim) != c.hidden_size:
        raise ValueError("axial positions do not stand in two tables of hidden_size channels together")
    return {
        "kind": "axial",
        "rows": lambda c: c.axial_pos_shape[0],
        "columns": lambda c: c.axial_pos_shape[1],
        "row_width": lambda c: c.axial_pos_embds_dim[0],
    }


def _attention(c: Any) -> dict[str, Source]:
    hashed = c.attn_layers[c.layer] == "lsh"
    name = "lsh" if hashed else "local"
    return {
        "kind": "bucketed",
        "heads": Key("num_attention_heads"),
        "head_dim": Key("attention_head_size"),
        "sorted_by": "hash" if hashed else "position",
        "chunk": Key(f"{name}_attn_chunk_length"),
        "chunks_before": Key(f"{name}_num_chunks_before"),
        "rounds": Key("num_hashes") if hashed else None,
        "buckets": _buckets if hashed else None,
    }


def _buckets(c: Any) -> int | None:
    found: int | list[int] | None = c.num_buckets
    return found[0] * found[1] if isinstance(found, list) else found


def _layers(c: Any) -> int:
    if not c.is_decoder or c.local_num_chunks_after or c.lsh_num_chunks_after:
        raise ValueError("it is no decoder: is_decoder is false, or queries see chunks after their own")
    layers: int = c.num_hidden_layers
    return layers


def _undeclared(c: Any) -> list[str] | None:
    return None if "lsh" not in c.attn_layers else ["random vectors of hashing are drawn anew, or from hash_seed"]


CONFIG: Table = {
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": "pre",
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": False,
    "streams": {"kind": "reversible"},
    "layers": _layers,
    "position": _position,
    "attention": _attention,
    "ffn.kind": "mlp",
    "ffn.activation": activation("hidden_act"),
    "ffn.width": Key("feed_forward_size"),
    "ffn.bias": True,
    "logits.bias": True,
    "logits.idle_bias": True,
    "undeclared": _undeclared,
}


def _attn_layers(o: Any) -> list[str]:
    return ["lsh" if by == "hash" else "local" for by in o.column("attention.sorted_by")]


def _pair(o: Any, *names: str) -> list[int] | None:
    found = [o.first(f"position.{name}") for name in names]
    return None if None in found else found


def _widths(o: Any) -> list[int] | None:
    width = o.first("position.row_width")
    return width and [width, o.header["hidden_size"] - width]


INVERSE: Inverse = {
    "is_decoder": lambda o: True,
    "attn_layers": _attn_layers,
    "local_num_chunks_after": lambda o: 0,
    "lsh_num_chunks_after": lambda o: 0,
    "axial_pos_embds": lambda o: o.first("position.kind") == "axial",
    "axial_pos_shape": lambda o: _pair(o, "rows", "columns"),
    "axial_pos_embds_dim": _widths,
}

FAMILY = Family("reformer", tier="exotic", config=CONFIG, inverse=INVERSE)
