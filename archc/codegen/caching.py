"""The cache of a generated module: two tensors for every layer, with a row for each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.naming import literal

Sizes = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What layers keep of a position: in words, as attributes of the cache, as parameters, and its dimensions."""

    words: str
    attributes: tuple[str, str]
    parameters: tuple[str, str]
    dimensions: str


KEYS_AND_VALUES = Kept("keys and values", ("keys", "values"), ("k_BKTC", "v_BKTC"), "[B, K, S, C]")
LATENTS_AND_KEYS = Kept("latents and keys", ("latents", "keys"), ("latent_B1TR", "key_B1TC"), "[B, 1, S, R/C]")
_EITHER = Kept("pairs", ("first", "second"), ("first_BKTC", "second_BKTC"), "[B, K, S, C]")


@dataclass(frozen=True, slots=True)
class CacheView:
    """Heads and channels of both tensors: of all layers alike, or by the kind of a layer."""

    kept: Kept
    comment: str
    shared: tuple[Sizes, Sizes] | None
    of_kind: Mapping[str, tuple[Sizes, Sizes]]

    @property
    def second_as_first(self) -> bool:
        """Whether both tensors have the same sizes everywhere."""
        found = list(self.of_kind.values()) if self.shared is None else [self.shared]
        return all(first == second for first, second in found)


def cache_view(
    sizes: Mapping[str, tuple[tuple[int, int], tuple[int, int]]], named: tuple[Sizes, Sizes], kept: Sequence[Kept]
) -> CacheView:
    """The cache of layers whose kinds have these sizes; `named` are their constants where all agree."""
    found = list(dict.fromkeys(kept))
    alike = found[0] if len(found) == 1 else _EITHER
    comment = "" if len(found) == 1 else ", or ".join(one.words for one in found)
    if len(set(sizes.values())) == 1:
        return CacheView(alike, comment, named, {})
    by_kind = {kind: (_words(first), _words(second)) for kind, (first, second) in sizes.items()}
    return CacheView(alike, comment, None, by_kind)


def _words(sizes: tuple[int, int]) -> Sizes:
    heads, channels = sizes
    return literal(heads), literal(channels)
