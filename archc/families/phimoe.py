"""phimoe: layer norms, experts taken one after another (transformers 5.24, models/phimoe/modeling_phimoe.py)."""

from typing import Any

from archc.families import llama, mistral, mixtral
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import SCALING_KEYS, head_dim, layernorm, moe, rope, without

ROUTER: Table = {
    "score": "softmax",
    "order": "sparsemixer",
    "renormalize": False,
    "jitter": Key("router_jitter_noise"),
}
# sparsemixer takes two experts, whatever num_experts_per_tok says.
EXPERTS = moe(ROUTER, experts=Key("num_local_experts"), top_k=2, width=Key("intermediate_size"))


def position(c: Any) -> Any:
    """Rotary positions; where they are scaled, cosines and sines are multiplied by the two mscales.

    The class works its frequencies out anew for every input, and never for a long one: long_factor is not read.
    """
    section = rope(c)
    scaling = section["scaling"](c)
    if scaling is None:
        return section
    kind, short = c.rope()["rope_type"], float(c.rope()["short_mscale"])
    if kind not in ("yarn", "longrope"):
        if short != 1:
            raise ValueError(f"rope_type {kind!r} with cosines and sines multiplied by a short_mscale of {short:g}")
        # Frequencies are always those of the original context, up to which dynamic ones do not change.
        return {**section, "scaling": None} if kind == "dynamic" else section
    own: Table = {"attention_factor": short}
    if kind == "longrope":
        own = {**own, "long_attention_factor": _long_mscale, "long_factors": scaling["short_factors"]}
    return {**section, "scaling": {**scaling, **own}}


def _long_mscale(c: Any) -> float | None:
    short, long = c.rope().get("short_mscale"), c.rope().get("long_mscale")
    return None if short == long else float(long)


def undeclared(c: Any) -> list[str] | None:
    """Two mscales that differ, where the scaling has a field for one."""
    if c.rope().get("rope_type") == "longrope" or (long := _long_mscale(c)) is None:
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


def _rope_parameters(o: Any) -> dict[str, Any] | None:
    """Those of scaled positions, with both mscales; the table for long inputs is not read: the other one again."""
    kind = o.first("position.scaling.kind")
    if kind not in SCALING_KEYS:
        return None
    every = {key: o.first(f"position.scaling.{field}") for field, key in SCALING_KEYS[kind].items()}
    stated = {key: value for key, value in every.items() if value is not None}
    short = stated.pop("attention_factor", 1.0)
    if kind == "longrope":
        stated["short_factor"] = stated["long_factor"] = list(stated["short_factor"])
    return {
        "rope_type": kind,
        "rope_theta": o.first("position.base"),
        "original_max_position_embeddings": o.first("position.scaling.original_context") or o.header["context"],
        "short_mscale": short,
        "long_mscale": o.first("position.scaling.long_attention_factor") or short,
        **stated,
    }


INVERSE: Inverse = {"rope_parameters": _rope_parameters}

FAMILY = Family("phimoe", mixtral.FAMILY.rules, tier="mixture", config=CONFIG, inverse=INVERSE)
