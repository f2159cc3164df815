"""How many parameters a model has, and where they are.

Every tensor of the Architecture is counted once: a tied head has no tensor of its own, and shared parameters are
yielded once. Buffers that a checkpoint stores beside its parameters (old rotary tables, router correction biases)
are no parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict, get_args

from archc.analysis.layers import typical_layer
from archc.architecture.model import Architecture, Layer
from archc.parts.base import Group, Routed, Tensor

Sums = Counter[str]
"""What adds up over the tensors of a model, by name."""


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
    """The parameters of `architecture`."""
    return params_of(tensor_sums(architecture.counted()))


def tensor_sums(counted: Iterable[tuple[Tensor, int]]) -> Sums:
    """Numbers of each group, those that one token uses, those of experts, and stored buffers."""
    sums: Sums = Counter()
    for tensor, count in counted:
        if tensor.buffer:
            sums["buffers"] += tensor.size * count
            continue
        sums[tensor.group] += tensor.size * count
        sums["active"] += tensor.active_size * count
        if tensor.slices_used is not None:
            sums["experts"] += tensor.size * count
    return sums


def params_of(sums: Sums) -> Params:
    """The counts, from the sums over all tensors."""
    total = _total(sums)
    ends = sums["embedding"] + sums["head"] + sums["position"]
    return Params(
        total=total,
        active=sums["active"],
        total_without_embeddings=total - ends,
        active_without_embeddings=sums["active"] - ends,
        embedding=sums["embedding"],
        head=sums["head"],
        attention=sums["attention"],
        ffn=sums["ffn"],
        router=sums["router"],
        norm=sums["norm"],
        position=sums["position"],
        other=sums["other"],
        stored_buffers=sums["buffers"],
    )


def block_shares(architecture: Architecture) -> Block:
    """What the feed-forwards and the mixers hold of all blocks."""
    return shares_of(tensor_sums(architecture.counted_in_layers()))


def shares_of(sums: Sums) -> Block:
    """The shares, from the sums over the tensors of all layers."""
    whole = _total(sums)
    return Block(
        ffn_share=(sums["ffn"] + sums["router"]) / whole,
        attention_share=sums["attention"] / whole,
    )


def expert_params(architecture: Architecture) -> Moe | None:
    """The experts of a model; None for a dense one."""
    layer = typical_layer(architecture, lambda layer: layer.ffn is not None and layer.ffn.routed is not None)
    routed = layer.ffn.routed if layer and layer.ffn else None
    return None if routed is None else experts_of(routed, tensor_sums(architecture.counted()))


def experts_of(routed: Routed, sums: Sums) -> Moe:
    """The experts of a model whose most common ones are `routed`, from the sums over all tensors."""
    return Moe(
        experts=routed.experts,
        top_k=routed.top_k,
        expert_params=sums["experts"],
        params_per_expert=routed.params_per_expert,
        expert_share=sums["experts"] / _total(sums),
    )


def _total(sums: Sums) -> int:
    return sum(sums[group] for group in get_args(Group))


def layer_params(layer: Layer) -> tuple[int, int]:
    """All parameters of one layer, shared ones included, and those that one token uses."""
    tensors = [tensor for tensor in layer.tensors("") if not tensor.buffer]
    return sum(tensor.size for tensor in tensors), sum(tensor.active_size for tensor in tensors)
