"""The cache of a generated module: two tensors for every layer, with a row for each position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.by_kind import chosen

Sizes = tuple[str, str]
ALL = "max_length"
"""The rows of a layer that keeps every position."""
_VARIABLES = ("heads", "channels", "other_heads", "other_channels")


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
    """What layers keep, and by the kind of a layer: heads and channels of both tensors, and how many rows are kept."""

    kept: Kept
    comment: str
    splits: bool
    """Whether heads may be split over `ranks` processes."""
    sizes: Mapping[str, tuple[Sizes, Sizes]]
    positions: Mapping[str, str]

    @property
    def parameters(self) -> list[str]:
        """What a cache is made of."""
        return ["self", "batch: int", "max_length: int", "like: Tensor", *(["ranks: int"] if self.splits else [])]

    @property
    def by_kind(self) -> bool:
        """Whether sizes are others in layers of another kind."""
        return len(set(self.sizes.values())) > 1 or len(set(self.positions.values())) > 1

    @property
    def rolls(self) -> bool:
        """Whether rows of some layers are written again."""
        return set(self.positions.values()) != {ALL}

    @property
    def rows(self) -> str:
        """How many rows a layer has."""
        kept = set(self.positions.values())
        if kept == {ALL}:
            return ALL
        return f"min({kept.pop() if len(kept) == 1 else 'rows'}, {ALL})"

    @property
    def shared(self) -> tuple[Sizes, Sizes]:
        """Those of all kinds, or the variables that hold them."""
        first, second = next(iter(self.sizes.values()))
        numbers = (*first, *second)
        names = [self._variable(place) or number for place, number in enumerate(numbers)]
        return (self._held(names[0]), names[1]), (self._held(names[2]), names[3])

    @property
    def statements(self) -> Iterator[str]:
        """Statements that find rows, heads and channels of a layer where they are not the same in all."""
        if len(set(self.positions.values())) > 1:
            yield chosen(12, "rows", self.positions)
        done = set()
        for place in range(4):
            name = self._variable(place)
            if name and name not in done:
                done.add(name)
                yield chosen(12, name, self._numbers(place))

    def _held(self, heads: str) -> str:
        """How many heads a process holds: some that query heads on several processes share are on all of those."""
        return f"max({heads} // ranks, 1)" if self.splits else heads

    def _variable(self, place: int) -> str | None:
        """The variable of a size that differs between kinds; a size of values is that of keys where it is the same."""
        numbers = self._numbers(place)
        if len(set(numbers.values())) == 1:
            return None
        same = next(other for other in range(4) if self._numbers(other) == numbers)
        return _VARIABLES[same]

    def _numbers(self, place: int) -> dict[str, str]:
        return {kind: (*first, *second)[place] for kind, (first, second) in self.sizes.items()}


def cache_view(
    sizes: Mapping[str, tuple[Sizes, Sizes]], kept: Sequence[Kept], positions: Mapping[str, str], *, splits: bool
) -> CacheView:
    """The cache of layers whose kinds have these sizes, and keep so many positions; heads are perhaps split."""
    found = list(dict.fromkeys(kept))
    comment = "" if len(found) == 1 else ", or ".join(one.words for one in found)
    return CacheView(found[0] if len(found) == 1 else _EITHER, comment, splits, sizes, positions)
