"""gemma4_text: experts beside the dense feed-forward, and a vector of each token for every layer
(transformers 5.24, models/gemma4/modeling_gemma4.py).
"""

from typing import Any

from archc.families import gemma4_unified_text
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import activation

ACTIVATION = activation("hidden_activation")
DENSE: Table = {"kind": "gated", "activation": ACTIVATION, "width": gemma4_unified_text.CONFIG["ffn.width"]}
EXPERTS: Table = {
    "kind": "moe",
    "experts": Key("num_experts"),
    "top_k": Key("top_k_experts"),
    "width": Key("moe_intermediate_size"),
    "activation": ACTIVATION,
    "router": {"score": "softmax", "renormalize": True, "norm": True, "expert_scale": True},
    "shared": {"width": DENSE["width"]},
    "norms": "each",
}


def per_layer(c: Any) -> dict[str, Source] | None:
    """The section `embedding.per_layer`."""
    if not c.hidden_size_per_layer_input:
        return None
    return {"width": Key("hidden_size_per_layer_input"), "rows": Key("vocab_size_per_layer_input")}


def _block(c: Any) -> list[dict[str, Source]] | None:
    ffn: dict[str, Source] = {"ffn": EXPERTS, "norm": {"placement": "post"}} if c.enable_moe_block else {"ffn": DENSE}
    row: dict[str, Source] = {"ffn": {"kind": "token_row", "activation": ACTIVATION}, "norm": {"placement": "post"}}
    return [{"attention": {}}, ffn, *([row] if c.hidden_size_per_layer_input else [])]


CONFIG: Table = {
    **{path: source for path, source in gemma4_unified_text.CONFIG.items() if not path.startswith("ffn.")},
    "embedding.per_layer": per_layer,
    "block": _block,
}

INVERSE: Inverse = {
    **gemma4_unified_text.INVERSE,
    "enable_moe_block": lambda o: o.first("ffn.kind") == "moe",
    "num_experts": lambda o: o.first("ffn.experts"),
    "top_k_experts": lambda o: o.first("ffn.top_k"),
    "moe_intermediate_size": lambda o: o.first("ffn.width") if o.first("ffn.kind") == "moe" else None,
}

FAMILY = Family("gemma4_text", tier="exotic", config=CONFIG, inverse=INVERSE)
