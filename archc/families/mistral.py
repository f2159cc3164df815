"""mistral: named as llama (transformers 5.24, models/mistral/modeling_mistral.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import head_dim


def window_rows(c: Any) -> str | None:
    """The window is that of every layer; the cache alone goes by layer_types, where a config has them."""
    types = c.get("layer_types")
    return "kept" if c.sliding_window and types and types[c.layer] == "full_attention" else None


CONFIG: Table = {
    **llama.CONFIG,
    "attention.head_dim": head_dim,
    "attention.bias": "none",
    "attention.window": Key("sliding_window"),
    "attention.window_rows": window_rows,
    "ffn.bias": False,
}


def _layer_types(o: Any) -> list[str] | None:
    rows = o.column("attention.window_rows")
    return ["full_attention" if kept == "kept" else "sliding_attention" for kept in rows] if "kept" in rows else None


INVERSE: Inverse = {"layer_types": _layer_types}

FAMILY = Family(
    "mistral",
    llama.FAMILY.rules,
    ignored=llama.OLD_BUFFERS,
    tier="dense",
    config=CONFIG,
    inverse=INVERSE,
    taken_for={"layer_types": "ministral"},
)
