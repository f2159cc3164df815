"""Faults of places: tensors that fit where they do not belong, and axes and heads in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Fault, Slip, Weights
from archc.faults.reading import (
    Reading,
    attention_of,
    exchanged,
    in_heads,
    model_reading,
    of_heads,
    reading_slips,
    shapes,
)
from archc.parts.attention import Attention
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.latent import LatentAttention

_MATRICES = ("attention", "ffn", "router")


def _slot_of(kind: Any, layer: Layer) -> str | None:
    """Where a layer holds a part of this type."""
    slots = (slot for branch in layer.branches for slot, part in branch.parts if isinstance(part, kind))
    return next(slots, None)


def _part(kind: Any, layer: Layer) -> Any:
    return next(part for part in layer.parts() if isinstance(part, kind))


def _exchanging(one: str, other: str, declared: str, behaves_as: str) -> Reading:
    """Two modules of a layer, each with the tensors of the other, where these have the same shapes."""

    def fits(layer: Layer) -> bool:
        found = shapes(layer)
        changed = exchanged(found, one, other)
        return bool(changed) and all(found.get(name) == shape for name, shape in changed.items())

    return Reading(declared, behaves_as, fits, lambda _, tensors: exchanged(tensors, one, other))


def _kv(architecture: Architecture) -> Iterator[Reading]:
    del architecture
    yield _exchanging("attention.k", "attention.v", "k, v", "v, k")


def _gates(architecture: Architecture) -> Iterator[Reading]:
    """Every gated feed-forward of a layer at once: experts, and what is shared."""
    del architecture
    pairs = [
        (f"{slot}.gate{end}", f"{slot}.up{end}") for slot in ("ffn", "ffn.shared") for end in ("", "_bias", "_factor")
    ]

    def fits(layer: Layer) -> bool:
        parts = [part for part in layer.parts() if isinstance(part, FeedForward | Experts)]
        return any(part.gated for part in parts) and _slot_of(FeedForward | Experts, layer) == "ffn"

    def change(layer: Layer, tensors: Weights) -> Weights:
        del layer
        return {name: tensor for pair in pairs for name, tensor in exchanged(tensors, *pair).items()}

    yield Reading("activation(gate) · up", "activation(up) · gate", fits, change)


def _head_norms(architecture: Architecture) -> Iterator[Reading]:
    del architecture
    yield _exchanging("attention.q_norm", "attention.k_norm", "each its own", "exchanged")


def _rounded_norms(architecture: Architecture) -> Iterator[Slip]:
    """Weights to which 1 is added in bfloat16, when they are converted."""
    one_plus: set[str] = set()
    for index, layer in enumerate(architecture.layers):
        norms = {f"layers.{index}.norm": layer.shared_norm}
        for branch in layer.branches:
            norms |= {f"layers.{index}.{branch.slot}_norm": branch.pre_norm}
            norms |= {f"layers.{index}.{branch.slot}_post_norm": branch.post_norm}
            for slot, part in branch.parts:
                for name in ("q_norm", "k_norm"):
                    norms[f"layers.{index}.{slot}.{name}"] = getattr(part, name, None)
        norms["final_norm"] = architecture.final_norm
        one_plus |= {f"{name}.weight" for name, norm in norms.items() if norm and norm.weight == "one_plus"}

    def change(weights: Weights) -> Weights:
        return {name: weights[name].bfloat16().add(1).float().sub(1) for name in one_plus & weights.keys()}

    if one_plus:
        yield Slip("one_plus", "one_plus, added in bfloat16", model_reading(change))


def _experts(architecture: Architecture) -> Iterator[Reading]:
    del architecture

    def of_experts(behaves_as: str, names: tuple[str, ...], order: Callable[[int], list[int]]) -> Reading:
        def fits(layer: Layer) -> bool:
            slot = _slot_of(Experts, layer)
            return slot is not None and order(count := _part(Experts, layer).experts) != list(range(count))

        def change(layer: Layer, tensors: Weights) -> Weights:
            slot, picked = _slot_of(Experts, layer), order(_part(Experts, layer).experts)
            paths = [f"{slot}.{name}{end}" for name in names for end in ("", "_bias")]
            return {path: tensors[path][picked] for path in paths if path in tensors}

        return Reading("as the router counts", behaves_as, fits, change)

    def one_further(count: int) -> list[int]:
        return [(number + 1) % count for number in range(count)]

    every = ("gate", "up", "down")
    yield of_experts("one further", every, one_further)
    yield of_experts("down one further", ("down",), one_further)
    yield of_experts("sorted by name", every, lambda count: sorted(range(count), key=str))
    yield of_experts("the first for all", every, lambda count: [0] * count)


def _transposed(architecture: Architecture) -> Iterator[Reading]:
    """Square matrices, which fit either way."""
    names: dict[str, None] = {}
    for layer, _ in architecture.distinct:
        for tensor in layer.tensors("layer"):
            square = len(tensor.shape) > 1 and tensor.shape[-1] == tensor.shape[-2]
            if square and tensor.group in _MATRICES and not tensor.buffer:
                names[tensor.name.removeprefix("layer.")] = None

    def reading(name: str) -> Reading:
        def fits(layer: Layer) -> bool:
            shape = shapes(layer).get(name, (1, 2))
            return shape[-1] == shape[-2]

        return Reading("[out, in]", f"{name} as [in, out]", fits, lambda _, tensors: {name: tensors[name].mT})

    yield from map(reading, names)


def _heads(architecture: Architecture) -> Iterator[Reading]:
    del architecture

    def by_turns(part: Attention) -> list[int]:
        return [kv * part.group_size + member for member in range(part.group_size) for kv in range(part.kv_heads)]

    def grouped(layer: Layer) -> bool:
        part = attention_of(layer)
        return part is not None and part.group_size > 1 and part.kv_heads > 1

    def several(layer: Layer) -> bool:
        part = attention_of(layer)
        return part is not None and part.kv_heads > 1

    def rows(
        names: tuple[str, ...], change: Callable[[Attention, str, Any], Any]
    ) -> Callable[[Layer, Weights], Weights]:
        def of(layer: Layer, tensors: Weights) -> Weights:
            part, slot = attention_of(layer), _slot_of(Attention, layer)
            assert part is not None
            paths = {f"{slot}.{name}{end}": name for name in names for end in (".weight", ".bias")}
            return {path: change(part, name, tensors[path]) for path, name in paths.items() if path in tensors}

        return of

    def rolled(part: Attention, name: str, tensor: Any) -> Any:
        del name
        return of_heads(tensor, part.kv_heads, [(head + 1) % part.kv_heads for head in range(part.kv_heads)])

    def channels_first(part: Attention, name: str, tensor: Any) -> Any:
        heads = part.heads if name == "q" else part.kv_heads
        return tensor.unflatten(0, (-1, heads)).transpose(0, 1).flatten(0, 1)

    yield Reading(
        "heads in order",
        "q by turns of its groups",
        grouped,
        rows(("q",), lambda part, _, tensor: of_heads(tensor, part.heads, by_turns(part))),
    )
    yield Reading("heads in order", "k and v one head further", several, rows(("k", "v"), rolled))
    yield Reading("heads in order", "channels before heads", several, rows(("q", "k", "v"), channels_first))


def _latent(architecture: Architecture) -> Iterator[Reading]:
    del architecture

    def fits(layer: Layer) -> bool:
        return _slot_of(LatentAttention, layer) is not None

    def fields(layer: Layer) -> Any:
        return _part(LatentAttention, layer).fields

    def slot(layer: Layer) -> str:
        return f"{_slot_of(LatentAttention, layer)}"

    def of(names: tuple[str, ...], change: Callable[[Any, Any], Any]) -> Callable[[Layer, Weights], Weights]:
        def made(layer: Layer, tensors: Weights) -> Weights:
            paths = [f"{slot(layer)}.{name}.{end}" for name in names for end in ("weight", "bias")]
            return {path: change(fields(layer), tensors[path]) for path in paths if path in tensors}

        return made

    def flat(one: Any, tensor: Any) -> Any:
        """All keys, then all values, where each head has its own beside each other."""
        from torch import cat

        keys, values = tensor.split((one.heads * one.nope_dim, one.heads * one.value_dim))
        parts = keys.unflatten(0, (one.heads, -1)), values.unflatten(0, (one.heads, -1))
        return cat(parts, 1).flatten(0, 1)

    def turning_first(one: Any, tensor: Any) -> Any:
        channels = one.nope_dim + one.rope_dim
        return in_heads(tensor, one.heads, [(one.rope_dim + place) % channels for place in range(channels)])

    def key_first(one: Any, tensor: Any) -> Any:
        return tensor.roll(-one.rope_dim, 0)

    yield Reading("keys and values head by head", "all keys, then all values", fits, of(("kv_up",), flat))
    yield Reading("what turns is last", "what turns is first in q", fits, of(("q", "q_up"), turning_first))
    yield Reading("what turns is last", "what turns is first in kv_down", fits, of(("kv_down",), key_first))


def _layer_order(architecture: Architecture) -> Iterator[Slip]:
    """Layers 0, 1, 10, 11, 2 …, as their names are sorted."""
    count = len(architecture.layers)
    order = sorted(range(count), key=str)
    alike = [
        shapes(architecture.layers[place]) == shapes(architecture.layers[index]) for place, index in enumerate(order)
    ]
    if order == list(range(count)) or not all(alike):
        return

    def change(weights: Weights) -> Weights:
        found: dict[str, Any] = {}
        for place, index in enumerate(order):
            prefix = f"layers.{index}."
            inside = {name: tensor for name, tensor in weights.items() if name.startswith(prefix)}
            found |= {f"layers.{place}.{name.removeprefix(prefix)}": tensor for name, tensor in inside.items()}
        return found

    yield Slip("by number", "by name", model_reading(change))


def _rounded(architecture: Architecture) -> Iterator[Slip]:
    def change(weights: Weights) -> Weights:
        floating = {name: tensor for name, tensor in weights.items() if tensor.is_floating_point()}
        return {name: tensor.bfloat16().to(tensor.dtype) for name, tensor in floating.items()}

    if architecture.dtype == "float32":
        yield Slip("float32", "bfloat16", model_reading(change))


FAULTS = (
    Fault(
        id="ffn.gate_order",
        field="ffn.kind",
        kind="layout",
        wrong="Gate and up change places: the activation falls on the wrong half.",
        when="gated feed-forwards, and gated experts",
        mend="activate the half that is stored as gate, and multiply it by the other",
        slips=reading_slips(_gates),
        seen=("ml-explore/mlx-lm#767",),
    ),
    Fault(
        id="attention.qk_norm.exchanged",
        field="attention.qk_norm",
        kind="layout",
        wrong="The norms of queries and keys have each other's weights.",
        when="attention that norms queries and keys, with weights of the same shape",
        mend="read each norm's weight under its own name",
        slips=reading_slips(_head_norms),
        same_when="positions do not act, so that both weights meet in every product",
    ),
    Fault(
        id="norm.weight.rounded",
        field="norm.weight",
        kind="layout",
        wrong="A converter adds 1 to a norm's weight in bfloat16, and keeps what is left of it.",
        when="norms whose weight is stored less one",
        mend="bring the weight to float32 before 1 is added",
        slips=_rounded_norms,
        seen=("ggml-org/llama.cpp#5810",),
    ),
    Fault(
        id="layout.kv_order",
        field="layout.kv_order",
        kind="layout",
        wrong="Keys are taken for values, and values for keys.",
        when="attention whose keys and values have the same shape",
        mend="go by the order of the arguments where k and v are handed on",
        slips=reading_slips(_kv),
    ),
    Fault(
        id="layout.heads",
        field="attention.grouping",
        kind="layout",
        wrong="Heads of queries, or of keys and values, stand in another order than what they meet.",
        when="attention with several key/value heads",
        mend="keep the order of heads in q, k, v and in the columns of o, and channels within heads",
        slips=reading_slips(_heads),
        seen=("onnx/onnx#7274",),
        same_when="q, k, v and o are reordered together",
    ),
    Fault(
        id="layout.latent",
        field="attention.kind",
        kind="layout",
        wrong="The projections of latent attention are split in the wrong order.",
        when="latent attention (MLA)",
        mend="kv_up: keys and values head by head; q: what turns last in every head; kv_down: the shared key last",
        slips=reading_slips(_latent),
    ),
    Fault(
        id="layout.experts",
        field="layout.experts",
        kind="layout",
        wrong="Experts do not stand in the order of the router's rows.",
        when="mixtures of experts",
        mend="stack experts by their number, all their matrices alike, and route by the same numbers",
        slips=reading_slips(_experts),
        seen=("thinking-machines-lab/tinker-cookbook#459",),
        same_when="the rows of the router are reordered with them",
    ),
    Fault(
        id="layout.transpose",
        field="layout.transpose",
        kind="layout",
        wrong="A square matrix is used as its transpose: its shape does not tell.",
        when="models with square matrices",
        mend="compare the product with the reference's, not the shape; Conv1D stores [in, out], Linear [out, in]",
        slips=reading_slips(_transposed),
        seen=("AutoGPTQ/AutoGPTQ#139",),
        same_when="the matrix is symmetric",
    ),
    Fault(
        id="layout.layers",
        field="layers",
        kind="layout",
        wrong="Layers are sorted as text: 0, 1, 10, 11, 2.",
        when="more than ten layers",
        mend="sort layers by their number",
        slips=_layer_order,
    ),
    Fault(
        id="dtype",
        field="dtype",
        kind="layout",
        wrong="Weights that are stored in 32 bits are loaded in bfloat16.",
        when="checkpoints in float32",
        mend="load weights in the type that they are stored in",
        slips=_rounded,
    ),
)
