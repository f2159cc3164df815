"""longcat_flash: two attentions and two dense feed-forwards a layer, and experts whose output is added at its end
(transformers 5.24, models/longcat_flash/modeling_longcat_flash.py).
"""

from typing import Any

from archc.families.base import Family, Key, Source, Table
from archc.families.common import activation, rope
from archc.families.deepseek_v3 import DENSE, LATENT
from archc.importing.translate import NULL

_EXPERTS: Table = {
    "kind": "moe",
    "experts": Key("n_routed_experts"),
    "top_k": Key("moe_topk"),
    "width": Key("expert_ffn_hidden_size"),
    "activation": activation("hidden_act"),
    "router": {
        "score": "softmax",
        "correction": "buffer",
        "renormalize": False,
        "bias": lambda c: c.get("router_bias"),
        "scale": lambda c: float(c.routed_scaling_factor),
        "float32": True,
    },
    "identity": lambda c: {"count": Key("zero_expert_num"), "stored": "inputs"} if c.zero_expert_num else None,
}
_DENSE: Table = {**DENSE, "width": Key("ffn_hidden_size")}


def _block(c: Any) -> list[dict[str, Source]]:
    experts = {"ffn": _EXPERTS, "norm": NULL, "reads": "last_input", "residual": {"target": "layer_end"}}
    return [{"attention": {}}, {"ffn": _DENSE}, experts, {"attention": {}}, {"ffn": _DENSE}]


CONFIG: Table = {
    **LATENT,
    "layers": Key("num_layers"),
    "position": lambda c: rope(c, pairing="interleaved"),
    "attention.q_latent_scale": lambda c: (c.hidden_size / c.q_lora_rank) ** 0.5,
    "attention.kv_latent_scale": lambda c: (c.hidden_size / c.kv_lora_rank) ** 0.5,
    "block": _block,
    "undeclared": lambda c: ["the router's bias is stored and not added"] if c.get("router_bias") else None,
}

FAMILY = Family("longcat_flash", tier="latent", config=CONFIG)
