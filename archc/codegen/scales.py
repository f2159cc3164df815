"""Layers whose attention differs in its scale alone: they share a class, which reads a table of all layers' scales."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.codegen.inputs import without_inputs
from archc.parts.attention import Attention

SCALES = "ATTENTION_SCALES"
_FROM_TABLE = 0.0
"""The scale of an attention that reads the table: no spec can state it."""


def from_table(part: Attention) -> bool:
    """Whether an attention has its scale from the table."""
    return part.scale == _FROM_TABLE


def with_table(architecture: Architecture) -> tuple[Architecture, tuple[float, ...]]:
    """The architecture with layers that read the table, and the table, which is empty where none does.

    Layers that differ in nothing else are of one kind then, that of the first of them.
    """
    scales: dict[Hashable, set[float]] = {}
    for part in _attentions(architecture.layers):
        scales.setdefault(_without_scale(part), set()).add(part.scale)
    sharing = {core for core, found in scales.items() if len(found) > 1}
    if not sharing:
        return architecture, ()
    kinds: dict[Layer, str] = {}
    layers = []
    for layer in architecture.layers:
        reading = _reading(layer, sharing)
        if reading != layer:
            reading = replace(reading, kind=kinds.setdefault(replace(reading, kind=""), layer.kind))
        layers.append(reading)
    table = tuple(next((part.scale for part in _attentions([layer])), 1.0) for layer in architecture.layers)
    return replace(architecture, layers=tuple(layers)), table


def _attentions(layers: Iterable[Layer]) -> Iterator[Attention]:
    return (part for layer in layers for part in layer.parts() if isinstance(part, Attention))


def _without_scale(part: Attention) -> Attention:
    return replace(without_inputs(part), scale=_FROM_TABLE)


def _reading(layer: Layer, sharing: set[Hashable]) -> Layer:
    """A layer whose attention reads the table, where it is among those that share a class."""
    branches = []
    for branch in layer.branches:
        parts = []
        for slot, part in branch.parts:
            reads = isinstance(part, Attention) and _without_scale(part) in sharing
            parts.append((slot, replace(part, scale=_FROM_TABLE) if reads else part))
        branches.append(replace(branch, parts=tuple(parts)))
    return replace(layer, branches=tuple(branches))
