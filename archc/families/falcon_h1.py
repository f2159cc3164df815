"""falcon_h1: attention and mamba2 side by side, constants everywhere (transformers 5.24, models/falcon_h1)."""

from functools import partial
from typing import Any

from archc.families import bamba, llama, mamba2
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import exact_scale, factor, gated, without


def norm(c: Any) -> Table | None:
    """The section `mixer.output_norm`, where the config wants one."""
    if not c.mamba_rms_norm:
        return None
    return {"order": lambda c: "before_gate" if c.mamba_norm_before_gate else "after_gate"}


def factors(**keys: str) -> Any:
    """A section of constants under the keys that state them (a list's place behind a colon); none where all are 1."""

    def value(c: Any, key: str) -> float:
        name, _, place = key.partition(":")
        stated = getattr(c, name)
        return float(stated[int(place)] if place else stated)

    def read(c: Any) -> dict[str, Source] | None:
        found: dict[str, Source] = {}
        for field, key in keys.items():
            if value(c, key) != 1:
                found[field] = partial(value, key=key)
        return found or None

    return read


SLICES = {name: f"ssm_multipliers:{place}" for place, name in enumerate(("gate", "x", "b", "c", "dt"))}

CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    **exact_scale(factor("embedding_multiplier")),
    "logits.scale": factor("lm_head_multiplier"),
    "attention": {
        **bamba.ATTENTION,
        "factors": factors(input="attention_in_multiplier", key="key_multiplier", output="attention_out_multiplier"),
    },
    "mixer": {
        **mamba2.MIXER,
        "output_bias": Key("projectors_bias"),
        "output_norm": norm,
        "factors": factors(input="ssm_in_multiplier", **SLICES, output="ssm_out_multiplier"),
    },
    "ffn": gated(bias=Key("mlp_bias"), factors=factors(gate="mlp_multipliers:0", output="mlp_multipliers:1")),
}

INVERSE: Inverse = {
    "mamba_d_ssm": lambda o: o.first("mixer.heads") * o.first("mixer.head_dim"),
    "mamba_expand": mamba2.expansion,
}

FAMILY = Family("falcon_h1", tier="hybrid", config=CONFIG, inverse=INVERSE)
