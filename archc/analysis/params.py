"""How many parameters a model has, and where they are.

Every tensor of the Architecture is counted once: a tied head has no tensor of its own, and shared parameters are
yielded once. Buffers that a checkpoint stores beside its parameters (old rotary tables, router correction biases)
are no parameters.
"""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

from archc.analysis.layers import typical_layer
from archc.architecture.model import Architecture, Layer


class Params(TypedDict):
    """Parameters of the whole model. `embedding` to `other` add up to `total` exactly."""

    total: int
    active: int
    """Everything, both ends included, but the experts that a token does not use."""
    total_without_embeddings: int
    """Without the token table, a table of positions and the head: what Kaplan et al. (2020) call N."""
    active_without_embeddings: int
    """Those of `active` that are not in the token table, a table of positions or the head."""
    embedding: int
    head: int
    """0 when the head is the embedding."""
    attention: int
    """All mixers, without the norms inside them."""
    ffn: int
    router: int
    norm: int
    position: int
    other: int
    stored_buffers: int
    """Numbers that a checkpoint stores beside the parameters; not in `total`."""


class Block(TypedDict):
    """Shares of the parameters of all blocks together, norms included in the whole and in neither share."""

    ffn_share: float
    """Feed-forwards and experts, with their routers: the whole of the second stage of a block."""
    attention_share: float


class Moe(TypedDict):
    """The experts of the most common kind of layer that has any, and what all of them together hold."""

    experts: int
    top_k: int
    expert_params: int
    """All routed experts of all layers. Shared experts, which every token uses, are not among them."""
    params_per_expert: int
    expert_share: float
    """expert_params / params.total."""


def count_params(architecture: Architecture) -> Params:
    """Fold the tensors of `architecture` into counts."""
    groups: Counter[str] = Counter()
    active = 0
    buffers = 0
    for tensor, count in architecture.counted():
        if tensor.buffer:
            buffers += tensor.size * count
            continue
        groups[tensor.group] += tensor.size * count
        active += tensor.active_size * count
    total = groups.total()
    return Params(
        total=total,
        active=active,
        total_without_embeddings=total - groups["embedding"] - groups["head"] - groups["position"],
        active_without_embeddings=active - groups["embedding"] - groups["head"] - groups["position"],
        embedding=groups["embedding"],
        head=groups["head"],
        attention=groups["attention"],
        ffn=groups["ffn"],
        router=groups["router"],
        norm=groups["norm"],
        position=groups["position"],
        other=groups["other"],
        stored_buffers=buffers,
    )


def block_shares(architecture: Architecture) -> Block:
    """What the feed-forwards and the mixers hold of all blocks."""
    blocks = Counter[str]()
    for tensor, count in architecture.counted_in_layers():
        if not tensor.buffer:
            blocks[tensor.group] += tensor.size * count
    whole = blocks.total()
    return Block(
        ffn_share=(blocks["ffn"] + blocks["router"]) / whole,
        attention_share=blocks["attention"] / whole,
    )


def expert_params(architecture: Architecture) -> Moe | None:
    """The experts of a model; None for a dense one."""
    layer = typical_layer(architecture, lambda layer: layer.ffn is not None and layer.ffn.routed is not None)
    routed = layer.ffn.routed if layer and layer.ffn else None
    if routed is None:
        return None
    sizes = [(tensor, tensor.size * count) for tensor, count in architecture.counted() if not tensor.buffer]
    experts = sum(size for tensor, size in sizes if tensor.slices_used is not None)
    return Moe(
        experts=routed.experts,
        top_k=routed.top_k,
        expert_params=experts,
        params_per_expert=routed.params_per_expert,
        expert_share=experts / sum(size for _, size in sizes),
    )


def layer_params(layer: Layer) -> tuple[int, int]:
    """All parameters of one layer, shared ones included, and those that one token uses."""
    tensors = [tensor for tensor in layer.tensors("") if not tensor.buffer]
    return sum(tensor.size for tensor in tensors), sum(tensor.active_size for tensor in tensors)
