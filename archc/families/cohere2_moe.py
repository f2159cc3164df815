"""cohere2_moe: one norm for attention and experts side by side (transformers 5.24, models/cohere2_moe)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import ROUTED_EXPERTS, factor, gated, moe, rope, shared_ffn, window, without


def turns(c: Any) -> bool:
    """Whether heads turn: on layers with a window, and on the dense first ones where these are all full."""
    forced: bool = c.mlp_layer_types[c.layer] == "dense" and c.prefix_dense_sliding_window_pattern == 1
    return forced or window(c) is not None


def renormalize(c: Any) -> bool:
    """A softmax over the chosen needs none."""
    return c.expert_selection_fn == "sigmoid" and bool(c.norm_topk_prob)


def shared(c: Any) -> Table | None:
    """The shared experts as one."""
    if not c.num_shared_experts:
        return None
    return {"width": c.intermediate_size * c.num_shared_experts, "combine": Key("shared_expert_combination_strategy")}


ROUTER: Table = {"score": Key("expert_selection_fn"), "order": "top_k_then_score", "renormalize": renormalize}
EXPERTS = moe(ROUTER, width=Key("intermediate_size"), shared=shared)


def dense(c: Any) -> Table:
    """A dense feed-forward; without a width of its own it has that of an expert."""
    return gated("intermediate_size" if c.prefix_dense_intermediate_size is None else "prefix_dense_intermediate_size")


CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "norm.kind": lambda c: "layernorm" if c.rms_norm_eps is None else "rmsnorm",
    "norm.eps": lambda c: c.layer_norm_eps if c.rms_norm_eps is None else c.rms_norm_eps,
    "norm.placement": "parallel",
    "position": lambda c: rope(c, pairing="interleaved", float32="turning") if turns(c) else {"kind": "none"},
    "attention.window": window,
    "ffn": lambda c: EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else dense(c),
    "logits.scale": factor("logit_scale"),
}


def _width(kind: str) -> Any:
    def read(o: Any) -> int | None:
        widths = zip(o.column("ffn.kind"), o.column("ffn.width"), strict=True)
        return next((width for found, width in widths if found == kind), None)

    return read


INVERSE: Inverse = {"intermediate_size": _width("moe"), "prefix_dense_intermediate_size": _width("gated")}

FAMILY = Family(
    "cohere2_moe",
    llama.ENDS
    + llama.ATTENTION
    + llama.PARALLEL_NORM
    + llama.GATED_FFN
    + ROUTED_EXPERTS
    + shared_ffn("mlp.shared_experts"),
    tier="mixture",
    config=CONFIG,
    inverse=INVERSE,
)
