"""xglm: sines and cosines are added to the embedding (transformers 5.24, models/xglm/modeling_xglm.py)."""

from typing import Any

from archc.families import biogpt
from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, self_attending

_FIRST = 2


def _undeclared(c: Any) -> list[str] | None:
    """The row of the padding token is empty: it stands before the first position's, by default."""
    row = c.pad_token_id
    if row is not None and row < 0:
        row += c.max_position_embeddings + _FIRST  # counted from the end of the table
    return [f"position {row - _FIRST} adds nothing to the embedding"] if row is not None and row >= _FIRST else None


CONFIG: Table = {
    **biogpt.CONFIG,
    "layers": self_attending("num_layers"),
    "position": {"kind": "sinusoidal", "offset": _FIRST, "layout": "blocks", "slowest": "exact"},
    "attention.heads": Key("attention_heads"),
    "ffn.activation": activation("activation_function"),
    "ffn.width": Key("ffn_dim"),
    "undeclared": _undeclared,
}

ENDS = (
    Module("model.embed_tokens", ("embedding",)),
    Module("model.layer_norm", ("final_norm",)),
    Module("lm_head", ("head",)),
)

FAMILY = Family("xglm", ENDS + biogpt.layers("model"), tier="dense", config=CONFIG)
