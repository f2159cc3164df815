"""phimoe: layer norms, experts taken one after another (transformers 5.24, models/phimoe/modeling_phimoe.py)."""

from typing import Any

from archc.families import llama, mistral
from archc.families.base import Family, Key, Table
from archc.families.common import head_dim, layernorm, moe, rope, without

ROUTER: Table = {
    "score": "softmax",
    "order": "sparsemixer",
    "renormalize": False,
    "jitter": Key("router_jitter_noise"),
}
# sparsemixer takes two experts, whatever num_experts_per_tok says.
EXPERTS = moe(ROUTER, experts=Key("num_local_experts"), top_k=2, width=Key("intermediate_size"))


def position(c: Any) -> Any:
    """Rotary positions; where they are scaled, cosines and sines are multiplied by the two mscales."""
    section = rope(c)
    scaling = section["scaling"](c)
    if scaling is None:
        return section
    return {**section, "scaling": {**scaling, "attention_factor": lambda c: float(c.rope()["short_mscale"])}}


def undeclared(c: Any) -> list[str] | None:
    """Two mscales that differ, where there is a field for one."""
    short, long = c.rope().get("short_mscale"), c.rope().get("long_mscale")
    if short == long:
        return None
    return [f"cosines and sines are multiplied by {long:g} for inputs beyond the original context"]


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    **layernorm(Key("rms_norm_eps")),
    "position": position,
    "attention.head_dim": head_dim,
    "attention.window": Key("sliding_window"),
    "attention.window_rows": mistral.window_rows,
    "ffn": EXPERTS,
    "logits.bias": Key("lm_head_bias"),
    "undeclared": undeclared,
}

FAMILY = Family("phimoe", config=CONFIG)
