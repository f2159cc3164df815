"""An Architecture of which it is not known how many layers it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from archc.architecture.model import Architecture, Layer
from archc.formulas.unknown import unknown

DEPTH: Final = cast(int, unknown("layers"))
"""The number of layers; what asks for it takes it for a number."""


class Sketch(Architecture, frozen=True, kw_only=True):
    """A model with a layer of every kind, and a number that stands for how many there are of it."""

    counts: Mapping[str, int]

    @property
    def depth(self) -> int:
        return DEPTH

    @property
    def distinct(self) -> list[tuple[Layer, int]]:
        """Every kind of layer, and how many there are of it."""
        return [(layer, self.counts[layer.kind]) for layer in self.layers]


def sketch_of(architecture: Architecture, counts: Mapping[str, int]) -> Sketch:
    """The same model with other numbers of layers; `architecture` has one of every kind."""
    fields = {name: getattr(architecture, name) for name in architecture.__struct_fields__}
    return Sketch(**fields, counts=counts)
