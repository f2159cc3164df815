"""lfm2: short convolutions and attention (transformers 5.24, models/lfm2/modeling_lfm2.py)."""

from typing import Any

from archc.families import jamba, llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import without

ATTENTION: Table = {**jamba.ATTENTION, "qk_norm": {"over": "head"}}
MIXER: Table = {"kind": "short_conv", "kernel": Key("conv_L_cache"), "bias": Key("conv_bias")}


def convolves(c: Any) -> bool:
    """Whether the layer in question has a convolution, and not attention."""
    return bool(c.layer_types[c.layer] == "conv")


def width(c: Any) -> int:
    """Two thirds of the stated width, times a factor, rounded up; or the stated one, by a switch."""
    stated: int = c.intermediate_size
    if not c.block_auto_adjust_ff_dim:
        return stated
    found, factor = int(2 * stated / 3), c.block_ffn_dim_multiplier
    if factor is None:
        return found
    step: int = c.block_multiple_of
    return step * ((int(factor * found) + step - 1) // step)


def gated(width: Source) -> Table:
    """The section `ffn` of a dense feed-forward; its activation is no key."""
    return {"kind": "gated", "activation": "silu", "width": width}


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "norm.eps": Key("norm_eps"),
    "attention": lambda c: None if convolves(c) else ATTENTION,
    "mixer": lambda c: MIXER if convolves(c) else None,
    "ffn": gated(width),
}

FAMILY = Family("lfm2", tier="hybrid", config=CONFIG, inverse={"block_auto_adjust_ff_dim": lambda o: False})
