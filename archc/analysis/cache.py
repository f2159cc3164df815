"""What a model remembers from token to token: the KV cache.

The logical size: every layer holds what it needs for the next token, nothing rounded up to pages. A full layer keeps
a row for every position, a layer with a window of W the last W. Beside it stand two sizes that people meet in
practice: what transformers' own cache object holds, and what an engine allocates that gives every layer full pages
(without the rounding to whole pages, which depends on the engine).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypedDict

from msgspec import Struct

from archc.analysis.dtypes import BITS, stored_bytes
from archc.architecture.model import Architecture, Layer
from archc.parts.caches import Cache


class CacheKind(TypedDict):
    """All caches of one kind together; elements are numbers of one sequence."""

    layers: int
    """Layers that have at least one."""
    elements_per_token: int | float
    """What one more token costs for good."""
    window_elements_per_token: int
    """What one more token costs besides, until the windows are full."""
    fixed_elements: int
    """What is there whatever the length."""
    elements_at_context: int


class KvCache(TypedDict):
    """Sizes of the cache. Those at the context are for `batch` sequences of `context` tokens, all others for one."""

    dtype: str
    state_dtype: str
    """How recurrent states are stored; the same as `dtype` unless asked for."""
    elements_per_token: int | float
    """What one more token costs once every window is full: only layers without a window grow then."""
    bytes_per_token: int | float
    window_bytes_per_token: int
    """What one more token costs besides, in layers with a window, until their windows are full."""
    fixed_state_bytes: int
    """States that do not grow with the context, and the inputs that convolutions remember."""
    bytes_at_context: int
    context: int
    batch: int
    reference_elements_at_context: int
    """What transformers' own cache object holds; the rule is that of each kind of cache (`archc/parts/caches.py`)."""
    bytes_at_context_reserved: int
    """What engines allocate that give every layer, windowed or not, a row for every position."""
    by_kind: dict[str, CacheKind]


class CacheFold(Struct, frozen=True):
    """Sums over all caches of a model, stored in given types.

    Keys, values, latents and the inputs of convolutions are stored as `dtype`, recurrent states as `state_dtype`.
    """

    caches: tuple[tuple[Cache, int], ...]
    """Every cache, and how many layers have the same."""
    dtype: str
    state_dtype: str

    def count(self, size: Callable[[Cache], int]) -> int:
        """Numbers of one sequence, where a cache counts as `size`."""
        return sum(size(cache) * layers for cache, layers in self.caches)

    def stored(self, size: Callable[[Cache], int], batch: int = 1) -> int:
        """Bytes of `batch` sequences, where a cache counts as `size` numbers of each."""
        states = batch * sum(size(cache) * layers for cache, layers in self.caches if cache.state)
        rows = batch * sum(size(cache) * layers for cache, layers in self.caches if not cache.state)
        return stored_bytes(rows, self.dtype) + stored_bytes(states, self.state_dtype)

    def held(self, context: int, batch: int) -> int:
        """Bytes that `batch` sequences of `context` tokens need."""
        return self.stored(lambda cache: cache.held(context), batch)

    @property
    def growth(self) -> Fraction:
        """Numbers that one more token costs for good."""
        return sum((cache.growth * layers for cache, layers in self.caches), Fraction(0))


def fold_caches(architecture: Architecture, *, dtype: str, state_dtype: str) -> CacheFold:
    """The caches of `architecture`, stored in these types."""
    counted = ((cache, layers) for layer, layers in architecture.distinct for cache in layer_caches(layer))
    return CacheFold(tuple(counted), dtype, state_dtype)


def layer_caches(layer: Layer) -> list[Cache]:
    """Every cache of every part of a layer."""
    return [cache for part in layer.parts() for cache in part.caches()]


def cache_sizes(architecture: Architecture, *, context: int, batch: int, dtype: str, state_dtype: str) -> KvCache:
    """Fold the caches of `architecture` into sizes, for `batch` sequences of `context` tokens."""
    fold = fold_caches(architecture, dtype=dtype, state_dtype=state_dtype)
    return KvCache(
        dtype=dtype,
        state_dtype=state_dtype,
        elements_per_token=plain(fold.growth),
        bytes_per_token=plain(fold.growth * BITS[dtype] / 8),
        window_bytes_per_token=fold.stored(lambda cache: cache.window_growth),
        fixed_state_bytes=fold.stored(lambda cache: cache.fixed),
        bytes_at_context=fold.held(context, batch),
        context=context,
        batch=batch,
        reference_elements_at_context=batch * fold.count(lambda cache: cache.reference_held(context)),
        bytes_at_context_reserved=fold.stored(lambda cache: cache.reserved(context), batch),
        by_kind=_by_kind(architecture, context),
    )


def _by_kind(architecture: Architecture, context: int) -> dict[str, CacheKind]:
    """The caches of every kind."""
    found: dict[str, CacheKind] = {}
    growth: dict[str, Fraction] = {}
    for layer, layers in architecture.distinct:
        caches = layer_caches(layer)
        for kind in dict.fromkeys(cache.kind for cache in caches):
            new = CacheKind(
                layers=0, elements_per_token=0, window_elements_per_token=0, fixed_elements=0, elements_at_context=0
            )
            found.setdefault(kind, new)["layers"] += layers
        for cache in caches:
            kind = cache.kind
            growth[kind] = growth.get(kind, Fraction(0)) + cache.growth * layers
            found[kind]["elements_per_token"] = plain(growth[kind])
            found[kind]["window_elements_per_token"] += cache.window_growth * layers
            found[kind]["fixed_elements"] += cache.fixed * layers
            found[kind]["elements_at_context"] += cache.held(context) * layers
    return found


def plain(number: Fraction) -> int | float:
    """A whole number as such: only a cache of compressed positions grows by parts of an element."""
    return int(number) if number.denominator == 1 else float(number)
