"""gemma3n_text: several streams, a low-rank branch, and a vector of each token for every layer
(transformers 5.24, models/gemma3n/modeling_gemma3n.py).
"""

from math import sqrt
from typing import Any

from archc.families import gemma4_text
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.importing.translate import NULL

_HALVED: Table = {"stream": sqrt(0.5), "branch": sqrt(0.5)}


def _glu(c: Any) -> dict[str, Source] | None:
    share = c.activation_sparsity_pattern[c.layer]
    return {"sparsity": share} if share > 0 else None


def _block(c: Any) -> list[dict[str, Source]]:
    laurel: Table = {"kind": "low_rank", "rank": Key("laurel_rank"), "output_norm": True, "skip": True}
    row: Table = {"kind": "token_row", "activation": gemma4_text.ACTIVATION}
    dense: Table = {
        "kind": "gated",
        "activation": gemma4_text.ACTIVATION,
        "width": lambda c: c.intermediate_size[c.layer],
        "glu": _glu,
    }
    return [
        {"attention": {}},
        {"ffn": laurel, "norm": NULL, "reads": "last_input", "residual": _HALVED},
        {"ffn": dense},
        {"ffn": row, "norm": {"placement": "post"}, "residual": {"target": "other_streams"}},
    ]


CONFIG: Table = {
    **gemma4_text.CONFIG,
    "streams": {
        "kind": "altup",
        "count": Key("altup_num_inputs"),
        "active": Key("altup_active_idx"),
        "scaled": Key("altup_correct_scale"),
    },
    "attention.kv_heads": Key("num_key_value_heads"),
    "attention.head_dim": Key("head_dim"),
    "attention.values": None,
    "residual.layer_scalar": None,
    "undeclared": None,
    "block": _block,
}

INVERSE: Inverse = {
    "intermediate_size": lambda o: o.column("ffn#2.width"),
    "activation_sparsity_pattern": lambda o: [share or 0.0 for share in o.column("ffn#2.glu.sparsity")],
    "num_kv_shared_layers": lambda o: o.column("attention.kv").count("reused"),
}

FAMILY = Family("gemma3n_text", tier="exotic", config=CONFIG, inverse=INVERSE)
