"""inkling_text: a learned bias by distance, and short convolutions everywhere (transformers 5.24, models/inkling)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import factor, gated, moe, without
from archc.importing.translate import NULL


def stored(c: Any) -> int:
    """The number of the layer in question among those stored; relatives run a band of them several times."""
    layer: int = c.layer
    if not hasattr(c, "loop_num_passes"):
        return layer
    first, end = c.loop_layer_index_start, c.loop_layer_index_end
    more = (c.loop_num_passes - 1) * (end - first)
    if first <= layer < end + more:
        return int(first + (layer - first) % (end - first))
    return layer if layer < first else layer - more


def slides(c: Any) -> bool:
    """Whether the layer in question has a window, and the heads that go with it."""
    return bool(c.layer_types[stored(c)] == "hybrid_sliding")


def query_scale(c: Any, counts: str | None) -> dict[str, Source] | None:
    """The section `attention.query_scale` of full layers."""
    if slides(c) or c.log_scaling_n_floor is None:
        return None
    return {
        "form": "beyond",
        "strength": Key("log_scaling_alpha"),
        "length": Key("log_scaling_n_floor"),
        "first": 1,
        "counts": counts,
    }


def _key(c: Any, name: str) -> str:
    """The key that holds a size of the layer in question."""
    return f"swa_{name}" if slides(c) else name


def attention(c: Any, counts: str | None = None) -> dict[str, Source]:
    """The section `attention` of the layer in question, as far as relatives have it, too."""
    return {
        "heads": Key(_key(c, "num_attention_heads")),
        "kv_heads": Key(_key(c, "num_key_value_heads")),
        "head_dim": Key(_key(c, "head_dim")),
        "window": Key("sliding_window_size") if slides(c) else None,
        "query_scale": query_scale(c, counts),
        "distance_bias": {
            "channels": Key("d_rel"),
            "extent": Key("sliding_window_size" if slides(c) else "rel_extent"),
        },
        "kv_conv": {"kernel": Key("conv_kernel_size")},
    }


def _attention(c: Any) -> dict[str, Source]:
    found = attention(c, counts="columns")
    return {**found, "scale": lambda c: 1 / getattr(c, _key(c, "head_dim")), "qk_norm": {"over": "head"}}


_EXPERTS = moe(
    {
        "score": "sigmoid",
        "correction": "buffer",
        "renormalize": True,
        "scale": factor("route_scale"),
        "learned_scale": True,
        "float32": True,
    },
    experts=Key("n_routed_experts"),
    shared={
        "width": lambda c: c.n_shared_experts * c.moe_intermediate_size,
        "gate": "router",
        "count": Key("n_shared_experts"),
    },
)
_DENSE = gated(factors={"learned_output": True})


def convolved(block: list[dict[str, Source]], **conv: Source) -> list[dict[str, Source]]:
    """Branches, behind each of which stands a convolution."""
    mixer: Table = {"kind": "causal_conv", "kernel": Key("conv_kernel_size"), **conv}
    found: list[dict[str, Source]] = []
    for branch in block:
        found += [{**branch, "residual": {"target": "replace_input"}}, {"mixer": mixer, "norm": NULL}]
    return found


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "embedding.tied": False,
    "embedding.norm": True,
    "logits.scale": lambda c: 1 / c.logits_mup_width_multiplier,
    "logits.scaled": "input",
    "logits.given": lambda c: c.unpadded_vocab_size if (c.unpadded_vocab_size or c.vocab_size) < c.vocab_size else None,
    "position": {"kind": "none"},
    "block": lambda c: convolved(
        [{"attention": _attention}, {"ffn": _EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else _DENSE}]
    ),
}

FAMILY = Family("inkling_text", tier="exotic", config=CONFIG)
