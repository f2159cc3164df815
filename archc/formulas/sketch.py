"""An Architecture of which it is not known how many layers it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from msgspec.structs import replace

from archc.architecture.build import build_layer
from archc.architecture.model import Architecture, Layer
from archc.formulas.unknown import unknown
from archc.spec.language import Header, LayerFields

DEPTH: Final = cast(int, unknown("layers"))
"""The number of layers; what asks for it takes it for a number."""


class Sketch(Architecture, frozen=True, kw_only=True):
    """A model with a layer of every kind, and a number that stands for how many there are of it."""

    counts: tuple[int, ...]
    """How many layers there are of every one of `layers`."""

    @property
    def depth(self) -> int:
        return DEPTH

    @property
    def distinct(self) -> list[tuple[Layer, int]]:
        """Every kind of layer, and how many there are of it."""
        return list(zip(self.layers, self.counts, strict=True))


def sketch_of(architecture: Architecture, counts: Iterable[int] = ()) -> Sketch:
    """The same model with so many layers of every kind, of which `architecture` has one."""
    fields = {name: getattr(architecture, name) for name in architecture.__struct_fields__}
    return Sketch(**fields, counts=tuple(counts))


def sketched_layer(kind: str, fields: LayerFields, header: Header) -> Layer:
    """A kind of layer of a model whose sizes are not known.

    The context decides only by how much some scalings stretch cosines, which no figure asks: any will do.
    """
    return build_layer(kind, fields, replace(header, context=1), DEPTH)
