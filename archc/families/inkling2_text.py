"""inkling2_text: attention over earlier depths, projected sinks and taps (transformers 5.24, models/inkling2)."""

from typing import Any

from archc.families import inkling_text
from archc.families.base import Family, Key, Source, Table
from archc.families.common import moe, without


def _attention(c: Any) -> dict[str, Source]:
    found = inkling_text.attention(c)
    bias, conv = found["distance_bias"], found["kv_conv"]
    assert isinstance(bias, dict)
    assert isinstance(conv, dict)
    projected = {} if inkling_text.slides(c) else {"taps": "stored_and_projected"}
    return {
        **found,
        "length_limit": Key("qk_l2_clip_threshold"),
        "v_norm": True,
        "sinks": "projected",
        "gate": {"over": "element"},
        "inputs": None if inkling_text.slides(c) else "three",
        "distance_bias": {**bias, "length_limit": Key("rel_l2_clip_threshold")},
        "kv_conv": {**conv, **projected, "scaled": True},
    }


def _score(c: Any) -> str:
    name: str = c.scoring_func
    return {"sqrtsoftplus": "sqrt_softplus"}.get(name, name)


_EXPERTS = moe(
    {
        "score": _score,
        "correction": "buffer",
        "renormalize": True,
        "renormalize_eps": 1e-20,
        "scale": lambda c: float(c.route_scale),
        "float32": True,
    },
    experts=Key("n_routed_experts"),
    activation="silu",
    glu={"gate_softcap": Key("mlp_gate_softcap"), "up_softcap": Key("mlp_up_softcap"), "float32": True},
)


def block(c: Any, layer: int) -> list[dict[str, Source]]:
    """The branches of the layer in question, which is number `layer` of those stored."""
    first: Source = "unmixed" if layer == 0 else None
    found = inkling_text.convolved([{"attention": _attention, "reads": first}, {"ffn": _EXPERTS}], scaled=True)
    return [{**branch, "reads": "unmixed"} if "mixer" in branch else branch for branch in found]


CONFIG: Table = {
    **without(inkling_text.CONFIG, "logits"),
    "streams": {"kind": "depths", "layers": Key("n_layers_per_attn_res_block")},
    "logits.vocab_size": Key("unpadded_vocab_size"),
    "logits.softcap": Key("final_logit_softcapping"),
    "logits.float32": True,
    "block": lambda c: block(c, c.layer),
}

FAMILY = Family("inkling2_text", tier="exotic", config=CONFIG)
