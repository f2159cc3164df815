"""How many parameters a model has, and where they are.

Every tensor of the Architecture is counted once: a tied head has no tensor of its own, and shared parameters are
yielded once. Buffers that a checkpoint stores beside its parameters (old rotary tables, router correction biases)
are no parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict

from archc.analysis.layers import typical_layer
from archc.architecture.model import Architecture, Layer
from archc.parts.base import Tensor
from archc.parts.experts import Experts


class Params(TypedDict):
    """Parameters of the whole model. `embedding` to `other` add up to `total` exactly."""

    total: int
    active: int
    """Everything, both ends included, but the experts that a token does not use."""
    total_without_embeddings: int
    """Without the token table, a table of positions and the head: what Kaplan et al. (2020) call N."""
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
    for tensor in architecture.tensors():
        groups[tensor.group] += tensor.size
        active += tensor.active_size
    total = groups.total()
    return Params(
        total=total,
        active=active,
        total_without_embeddings=total - groups["embedding"] - groups["head"] - groups["position"],
        embedding=groups["embedding"],
        head=groups["head"],
        attention=groups["attention"],
        ffn=groups["ffn"],
        router=groups["router"],
        norm=groups["norm"],
        position=groups["position"],
        other=groups["other"],
        stored_buffers=0,
    )


def block_shares(architecture: Architecture) -> Block:
    """What the feed-forwards and the mixers hold of all blocks.

    The blocks are what remains of the model without its two ends and its final norm.
    """
    blocks = _by_group(architecture.tensors())
    blocks.subtract(_by_group(architecture.embedding.tensors()))
    blocks.subtract(_by_group(architecture.final_norm.tensors("final_norm")))
    blocks.subtract(_by_group(architecture.head.tensors()))
    whole = blocks.total()
    return Block(
        ffn_share=(blocks["ffn"] + blocks["router"]) / whole,
        attention_share=blocks["attention"] / whole,
    )


def expert_params(architecture: Architecture) -> Moe | None:
    """The experts of a model; None for a dense one."""
    layer = typical_layer(architecture, lambda layer: isinstance(layer.ffn, Experts))
    if layer is None or not isinstance(layer.ffn, Experts):
        return None
    tensors = list(architecture.tensors())
    routed = sum(tensor.size for tensor in tensors if tensor.slices_used is not None)
    return Moe(
        experts=layer.ffn.experts,
        top_k=layer.ffn.top_k,
        expert_params=routed,
        params_per_expert=layer.ffn.expert_size,
        expert_share=routed / sum(tensor.size for tensor in tensors),
    )


def layer_params(layer: Layer) -> tuple[int, int]:
    """All parameters of one layer, and those that one token uses."""
    tensors = list(layer.tensors())
    return sum(tensor.size for tensor in tensors), sum(tensor.active_size for tensor in tensors)


def _by_group(tensors: Iterable[Tensor]) -> Counter[str]:
    groups: Counter[str] = Counter()
    for tensor in tensors:
        groups[tensor.group] += tensor.size
    return groups
