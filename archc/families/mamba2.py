"""mamba2: one state space with grouped B and C per layer (transformers 5.24, models/mamba2/modeling_mamba2.py)."""

from math import isinf
from typing import Any

from archc.families import mamba
from archc.families.base import Family, Key, Table
from archc.families.common import activation, switch, without


def dt_min(c: Any) -> float | None:
    """The least time step, by `time_step_limit`; left out where it is 0."""
    limits = c.time_step_limit
    return float(limits[0]) or None if limits else None


def dt_max(c: Any) -> float | None:
    """The greatest time step, by `time_step_limit`; left out where there is none."""
    limits = c.time_step_limit
    return None if not limits or isinf(limits[1]) else float(limits[1])


def expansion(o: Any) -> int | None:
    """How many times hidden_size the heads of a spec have channels, if that is a whole number."""
    channels, hidden_size = o.first("mixer.heads") * o.first("mixer.head_dim"), o.header["hidden_size"]
    return None if channels % hidden_size else channels // hidden_size


MIXER: Table = {
    "kind": "mamba2",
    "heads": Key("mamba_n_heads"),
    "head_dim": Key("mamba_d_head"),
    "groups": Key("mamba_n_groups"),
    "state": Key("mamba_d_state"),
    "kernel": Key("mamba_d_conv"),
    "activation": activation("hidden_act"),
    "bias": Key("mamba_proj_bias"),
    "output_bias": Key("mamba_proj_bias"),
    "conv_bias": switch("mamba_conv_bias"),
    "output_norm": {"order": "after_gate"},
    "dt_min": dt_min,
    "dt_max": dt_max,
}
"""The section `mixer` under the keys that hybrids use."""

CONFIG: Table = {
    **without(mamba.CONFIG, "mixer"),
    "mixer": {
        **MIXER,
        "heads": Key("num_heads"),
        "head_dim": Key("head_dim"),
        "groups": Key("n_groups"),
        "state": Key("state_size"),
        "kernel": Key("conv_kernel"),
        "bias": Key("use_bias"),
        "output_bias": Key("use_bias"),
        "conv_bias": Key("use_conv_bias"),
    },
}

FAMILY = Family("mamba2", tier="hybrid", config=CONFIG, inverse={"expand": expansion})
