"""jamba: mamba with attention and experts now and then (transformers 5.24, models/jamba/modeling_jamba.py)."""

from collections.abc import Callable
from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import activation, gated, head_dim, moe, without

ATTENTION: Table = {
    "heads": Key("num_attention_heads"),
    "kv_heads": Key("num_key_value_heads"),
    "head_dim": head_dim,
}
MIXER: Table = {
    "kind": "mamba",
    "width": lambda c: c.mamba_expand * c.hidden_size,
    "state": Key("mamba_d_state"),
    "rank": Key("mamba_dt_rank"),
    "kernel": Key("mamba_d_conv"),
    "activation": activation("hidden_act"),
    "bias": Key("mamba_proj_bias"),
    "conv_bias": Key("mamba_conv_bias"),
}
EXPERTS = moe({"score": "softmax", "renormalize": False}, width=Key("intermediate_size"))


def attends(c: Any) -> bool:
    """Whether the layer in question has attention, and not a scan."""
    return bool(c.layer_types[c.layer] == "full_attention")


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": {"kind": "none"},
    "attention": lambda c: ATTENTION if attends(c) else None,
    "mixer": lambda c: None if attends(c) else {**MIXER, "inner_norm": {"eps": Key("rms_norm_eps")}},
    "ffn": lambda c: EXPERTS if c.layers_num_experts[c.layer] > 1 else gated(),
}


def _every(where: Callable[[Any], list[bool]], *, offset: bool) -> Callable[[Any], int]:
    """The period with which layers have something, or how many come before the first."""

    def read(o: Any) -> int:
        found = [layer for layer, has in enumerate(where(o)) if has] or [len(o.layers)]
        period = found[1] - found[0] if len(found) > 1 else len(o.layers) + 1
        return found[0] if offset else period

    return read


def _attending(o: Any) -> list[bool]:
    return [heads is not None for heads in o.column("attention.heads")]


def _sparse(o: Any) -> list[bool]:
    return [kind == "moe" for kind in o.column("ffn.kind")]


INVERSE: Inverse = {
    "attn_layer_period": _every(_attending, offset=False),
    "attn_layer_offset": _every(_attending, offset=True),
    "expert_layer_period": _every(_sparse, offset=False),
    "expert_layer_offset": _every(_sparse, offset=True),
}

FAMILY = Family("jamba", tier="hybrid", config=CONFIG, inverse=INVERSE)
