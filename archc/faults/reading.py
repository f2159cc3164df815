"""Slips in reading: every tensor is found under its name, and its numbers are taken for others.

Tensors are those of the generated module. A reading changes what one layer holds, by names inside it; only their
methods are used, so that nothing here imports torch before there are weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Faulty, Layers, Slip, Weights
from archc.faults.sites import Slips
from archc.parts.attention import Attention

Change: TypeAlias = Callable[[Layer, Weights], Weights]
"""Of a layer and its tensors, by their names in it: those that are taken for others. None where nothing is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One wrong way to read the tensors of layers: its word, which layers can be read so, and what they are then."""

    declared: str
    behaves_as: str
    fits: Callable[[Layer], bool]
    change: Change


def reading_slips(readings: Callable[[Architecture], Iterable[Reading]]) -> Slips:
    """The slips of layers that can be read in one of these ways."""

    def find(architecture: Architecture) -> Iterator[Slip]:
        for reading in readings(architecture):
            fitting = {id(layer) for layer, _ in architecture.distinct if reading.fits(layer)}
            layers = tuple(index for index, layer in enumerate(architecture.layers) if id(layer) in fitting)
            if layers:
                yield Slip(reading.declared, reading.behaves_as, _read(reading, architecture, layers), layers)

    return find


def model_reading(change: Callable[[Weights], Weights]) -> Callable[[Faulty, Layers], Faulty]:
    """A change of tensors that belong to no layer: those that are taken for others."""

    def plant(faulty: Faulty, layers: Layers) -> Faulty:
        del layers
        return replace(faulty, weights=(*faulty.weights, lambda weights: {**weights, **change(weights)}))

    return plant


def _read(reading: Reading, architecture: Architecture, possible: Sequence[int]) -> Callable[[Faulty, Layers], Faulty]:
    def change(weights: Weights, indices: Iterable[int]) -> Weights:
        found = dict(weights)
        for index in indices:
            prefix = f"layers.{index}."
            inside = {name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)}
            changed = reading.change(architecture.layers[index], inside)
            found |= {prefix + name: tensor for name, tensor in changed.items()}
        return found

    def plant(faulty: Faulty, layers: Layers) -> Faulty:
        indices = [index for index in possible if layers is None or index in layers]
        return replace(faulty, weights=(*faulty.weights, lambda weights: change(weights, indices)))

    return plant


def shapes(layer: Layer) -> Mapping[str, tuple[int, ...]]:
    """The shapes of a layer's tensors, by their names in it."""
    return {tensor.name.removeprefix("layer."): tensor.shape for tensor in layer.tensors("layer")}


def attention_of(layer: Layer) -> Attention | None:
    """The attention of a layer, where that is what mixes its tokens."""
    return next((part for part in layer.parts() if type(part) is Attention), None)


def in_heads(tensor: Any, heads: int, order: Sequence[int]) -> Any:
    """Rows in another order within every head: row i of a head is what was its row order[i]."""
    return tensor.unflatten(0, (heads, -1))[:, list(order)].flatten(0, 1)


def of_heads(tensor: Any, heads: int, order: Sequence[int], axis: int = 0) -> Any:
    """Whole heads in another order, along an axis of their rows or columns."""
    blocks = tensor.unflatten(axis, (heads, -1))
    picked = blocks[list(order)] if axis == 0 else blocks[:, list(order)]
    return picked.flatten(axis, axis + 1)


def exchanged(tensors: Weights, one: str, other: str) -> dict[str, Any]:
    """Two modules or parameters, each with the tensors of the other."""
    found = {}
    for name, tensor in tensors.items():
        for mine, theirs in ((one, other), (other, one)):
            if name == mine or name.startswith(f"{mine}."):
                found[theirs + name.removeprefix(mine)] = tensor
    return found
