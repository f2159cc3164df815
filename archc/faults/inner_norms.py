"""Faults of norms inside parts: of queries and keys, of values, of latents, and of embedded tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as replaced
from math import prod

from msgspec.structs import replace

from archc.architecture.model import Architecture
from archc.faults.base import Edit, Fault, Faulty, Layers, Slip, Weights
from archc.faults.norms import USUAL_EPS, other_eps, other_kind, other_weight
from archc.faults.sites import (
    attentions,
    branch_norms,
    edit_slips,
    feed_forwards,
    filled,
    head_norms,
    latents,
    left_out,
    model_slips,
    places,
    slips,
    word,
)
from archc.parts.attention import Attention
from archc.parts.latent import LatentAttention
from archc.parts.norm import Norm


def _other_order(attention: Attention) -> Iterator[tuple[str, Attention]]:
    """Turning leaves lengths as they are: only weights that differ in a pair, a shift or a mean tell the orders apart.

    Over the width of all heads, the length is that of all heads, which turning leaves as it is, too.
    """
    heads = attention.head_norms
    if attention.rope and any(norm.stores or norm.kind == "layernorm" for norm in heads):
        order = "after_rope" if attention.qk_norm_order == "before_rope" else "before_rope"
        yield order, replace(attention, qk_norm_order=order)


def _other_axis(attention: Attention) -> Iterator[tuple[str, Attention]]:
    q, k = attention.q_norm, attention.k_norm
    if q is None or k is None or attention.heads == 1:
        return
    by_head = attention.qk_norm_over == "head"
    if by_head:
        q, k = (
            replace(norm, size=heads * attention.head_dim, heads=None)
            for norm, heads in ((q, attention.heads), (k, attention.kv_heads))
        )
    else:
        q, k = (
            replace(norm, size=attention.head_dim, heads=heads if norm.stores else None)
            for norm, heads in ((q, attention.heads), (k, attention.kv_heads))
        )
    over = "width" if by_head else "head"
    yield over, replace(attention, q_norm=q, k_norm=k, qk_norm_over=over)


def _over_other_axis(architecture: Architecture) -> Iterator[Slip]:
    """Slips of the axis; weights of a head serve all of them, and weights of all are shared out among heads."""
    for slip in slips(attentions, lambda attention: attention.qk_norm_over, _other_axis)(architecture):
        yield replaced(slip, change=_with_weights_reshaped(slip))


def _with_weights_reshaped(slip: Slip) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        found = slip.change(faulty, layers)
        shapes = {
            f"{prefix}.{tensor.name}": (tensor.shape, part.heads if tensor.name.startswith("q") else part.kv_heads)
            for _, prefix, part in places(found.architecture, layers)
            if isinstance(part, Attention)
            for tensor in part.tensors()
            if tensor.name.startswith(("q_norm.", "k_norm."))
        }

        def values(weights: Weights) -> Weights:
            return {
                name: (weights[name] if weights[name].numel() == prod(shape) else weights[name].repeat(heads)).reshape(
                    shape
                )
                for name, (shape, heads) in shapes.items()
            }

        return filled(found, values) if shapes else found

    return change


def _latent_eps(architecture: Architecture) -> Iterator[Slip]:
    """The usual eps, and those of the norms around the parts."""
    found: dict[float, None] = {}

    def look(norm: Norm) -> Norm:
        found[norm.eps] = None
        return norm

    def wrong(part: LatentAttention) -> Iterator[tuple[str, LatentAttention]]:
        for eps in dict.fromkeys((*found, *USUAL_EPS)):
            q = part.q_norm and replace(part.q_norm, eps=eps)
            yield word(eps), replace(part, q_norm=q, kv_norm=replace(part.kv_norm, eps=eps))

    for layer in architecture.layers:
        branch_norms(layer, look)
    yield from slips(latents, lambda part: part.kv_norm.eps, wrong)(architecture)


_Q_LATENT = Edit(r"self\.q_norm\((self\.q_down\(x_BTD\)|raw_BTR)\)", r"\1")
_KV_LATENT = Edit(r"self\.kv_norm\((\w+)\)", r"\1")


def _has_latents(architecture: Architecture) -> bool:
    return any(isinstance(part, LatentAttention) for part in architecture.parts())


def _has_query_latents(architecture: Architecture) -> bool:
    return any(isinstance(part, LatentAttention) and part.q_norm for part in architecture.parts())


def _no_embedding_norm(architecture: Architecture) -> Iterator[tuple[object, str, Architecture]]:
    if architecture.embedding.norm:
        yield True, "false", replace(architecture, embedding=replace(architecture.embedding, norm=None))


FAULTS = (
    Fault(
        id="attention.qk_norm",
        field="attention.qk_norm",
        kind="architecture",
        wrong="Queries and keys are not normed.",
        when="attention with norms of queries and keys",
        mend="norm queries and keys before they meet",
        slips=left_out(attentions, "q_norm", "k_norm", behaves_as="none"),
    ),
    Fault(
        id="attention.qk_norm.order",
        field="attention.qk_norm.order",
        kind="architecture",
        wrong="Queries and keys are normed before they turn where they should be after, or the reverse.",
        when="norms of queries and keys with a weight or a mean, beside rotary positions",
        mend="follow the reference; the names of modules do not tell the order",
        slips=slips(attentions, lambda attention: attention.qk_norm_order, _other_order),
        seen=("vllm-project/vllm-metal#660",),
        same_when="the norm has no weight, or equal weights inside every pair of channels",
    ),
    Fault(
        id="attention.qk_norm.over",
        field="attention.qk_norm.over",
        kind="architecture",
        wrong="Queries and keys are normed over all heads together where each head is meant, or the reverse.",
        when="attention with norms of queries and keys and several heads",
        mend="split heads before the norm, or after it, as the reference does",
        slips=_over_other_axis,
        seen=("vllm-project/vllm#16311",),
    ),
    Fault(
        id="attention.qk_norm.kind",
        field="attention.qk_norm.kind",
        kind="architecture",
        wrong="The norms of queries and keys subtract the mean where they should not, or do not where they should.",
        when="attention with norms of queries and keys",
        mend="rmsnorm divides by the root mean square alone; layernorm subtracts the mean first",
        slips=slips(head_norms, lambda norm: norm.kind, other_kind),
    ),
    Fault(
        id="attention.qk_norm.eps",
        field="attention.qk_norm.eps",
        kind="architecture",
        wrong="The norms of queries and keys have another eps than declared.",
        when="attention with norms of queries and keys",
        mend="hand the eps of the config to these norms, or that of the reference's class where it is fixed",
        slips=slips(head_norms, lambda norm: norm.eps, other_eps),
        same_when="queries and keys are so large that the eps is below their last digit",
    ),
    Fault(
        id="attention.qk_norm.weight",
        field="attention.qk_norm.weight",
        kind="architecture",
        wrong="The norms of queries and keys multiply by w where 1 + w is meant, the reverse, or by nothing.",
        when="norms of queries and keys that store a weight",
        mend="ask for the convention of every norm of a layer, and not for one of the model",
        slips=slips(head_norms, lambda norm: norm.weight, other_weight),
        seen=("NeuraLegion/shainet#176",),
    ),
    Fault(
        id="attention.v_norm",
        field="attention.v_norm",
        kind="architecture",
        wrong="Values are not normed.",
        when="attention that norms its values",
        mend="norm values by an rmsnorm without weight",
        slips=left_out(attentions, "v_norm", behaves_as="false"),
    ),
    Fault(
        id="attention.output_norm",
        field="attention.output_norm",
        kind="architecture",
        wrong="The output of the heads is not normed before the output projection.",
        when="attention with a norm before its output projection",
        mend="norm what the heads put out, before the output projection",
        slips=left_out(attentions, "output_norm", behaves_as="false"),
    ),
    Fault(
        id="attention.latent_norm.eps",
        field="attention.latent_norm.eps",
        kind="architecture",
        wrong="The norms of latents have another eps than declared, such as that of the config.",
        when="latent attention",
        mend="some references give these norms the default of their class, and not the eps of the config",
        slips=_latent_eps,
        same_when="latents are so large that the eps is below their last digit",
    ),
    Fault(
        id="attention.latent_norm",
        field="attention.latent_norm",
        kind="architecture",
        wrong="The latent of keys and values is not normed.",
        when="latent attention",
        mend="norm the latent before keys and values are made of it, but not the rotary key beside it",
        slips=edit_slips(_has_latents, "a norm", "none", _KV_LATENT),
    ),
    Fault(
        id="attention.latent_norm.query",
        field="attention.latent_norm",
        kind="architecture",
        wrong="The latent of queries is not normed.",
        when="latent attention with a latent of queries",
        mend="norm the latent before queries are made of it",
        slips=edit_slips(_has_query_latents, "a norm", "none", _Q_LATENT),
    ),
    Fault(
        id="ffn.inner_norm",
        field="ffn.inner_norm",
        kind="architecture",
        wrong="What the last matrix of a feed-forward reads is not normed.",
        when="feed-forwards with a norm inside",
        mend="norm the product of the two halves before the last matrix",
        slips=left_out(feed_forwards, "inner_norm", behaves_as="false"),
    ),
    Fault(
        id="embedding.norm",
        field="embedding.norm",
        kind="architecture",
        wrong="Embedded tokens enter the first layer without the norm that stands between.",
        when="embeddings with a norm",
        mend="norm embedded tokens before the first layer",
        slips=model_slips(_no_embedding_norm),
    ),
)
