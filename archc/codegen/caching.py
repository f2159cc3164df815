"""The cache of a generated module: two tensors for every layer, with a row for each position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archc.codegen.naming import literal

Sizes = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CacheView:
    """Heads and channels of both tensors: of all layers alike, or by the kind of a layer."""

    shared: tuple[Sizes, Sizes] | None
    of_kind: Mapping[str, tuple[Sizes, Sizes]]

    @property
    def values_as_keys(self) -> bool:
        """Whether both tensors have the same sizes everywhere."""
        found = list(self.of_kind.values()) if self.shared is None else [self.shared]
        return all(keys == values for keys, values in found)


def cache_view(sizes: Mapping[str, tuple[tuple[int, int], tuple[int, int]]], named: tuple[Sizes, Sizes]) -> CacheView:
    """The cache of layers whose kinds have these sizes; `named` are their constants where all agree."""
    if len(set(sizes.values())) == 1:
        return CacheView(named, {})
    return CacheView(None, {kind: (_words(keys), _words(values)) for kind, (keys, values) in sizes.items()})


def _words(sizes: tuple[int, int]) -> Sizes:
    heads, channels = sizes
    return literal(heads), literal(channels)
