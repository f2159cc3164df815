"""What a model remembers from token to token: the KV cache.

The logical size: every layer holds what it needs for the next token, nothing rounded up to pages. A full layer keeps
a row for every position, a layer with a window of W the last W. Beside it stand two sizes that people meet in
practice: what transformers' own cache object holds, and what an engine allocates that gives every layer full pages
(without the rounding to whole pages, which depends on the engine).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypedDict, cast

from msgspec import Struct

from archc.analysis.dtypes import BITS, stored_bytes
from archc.architecture.model import Architecture, Layer
from archc.parts.caches import Cache, Exact, StateCache

CacheSums = defaultdict[str, Exact]
"""What adds up over the caches of one kind, by name."""


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

    def stored(self, size: Callable[[Cache], int], batch: int = 1) -> int:
        """Bytes of `batch` sequences, where a cache counts as `size` numbers of each."""
        states = batch * sum(size(cache) * layers for cache, layers in self.caches if cache.state)
        rows = batch * sum(size(cache) * layers for cache, layers in self.caches if not cache.state)
        return stored_bytes(rows, BITS[self.dtype]) + stored_bytes(states, BITS[self.state_dtype])

    def held(self, context: int, batch: int) -> int:
        """Bytes that `batch` sequences of `context` tokens need."""
        return self.stored(lambda cache: cache.held(context), batch)


def fold_caches(architecture: Architecture, *, dtype: str, state_dtype: str) -> CacheFold:
    """The caches of `architecture`, stored in these types."""
    counted = ((cache, layers) for layer, layers in architecture.distinct for cache in layer_caches(layer))
    return CacheFold(tuple(counted), dtype, state_dtype)


def layer_caches(layer: Layer) -> list[Cache]:
    """Every cache of every part of a layer."""
    return [cache for part in layer.parts() for cache in part.caches()]


def cache_sizes(architecture: Architecture, *, context: int, batch: int, dtype: str, state_dtype: str) -> KvCache:
    """Fold the caches of `architecture` into sizes, for `batch` sequences of `context` tokens."""
    sums = cache_sums(((layer_caches(layer), layers) for layer, layers in architecture.distinct), context=context)
    stored = stored_of(sums, batch=batch, bits=BITS[dtype], state_bits=BITS[state_dtype])
    return KvCache(
        dtype=dtype,
        state_dtype=state_dtype,
        elements_per_token=plain(stored["elements_per_token"]),
        bytes_per_token=plain(stored["bytes_per_token"]),
        window_bytes_per_token=stored["window_bytes_per_token"],
        fixed_state_bytes=stored["fixed_state_bytes"],
        bytes_at_context=stored["bytes_at_context"],
        context=context,
        batch=batch,
        reference_elements_at_context=stored["reference_elements_at_context"],
        bytes_at_context_reserved=stored["bytes_at_context_reserved"],
        by_kind={
            kind: CacheKind(
                layers=cast(int, found["layers"]),
                elements_per_token=plain(found["growth"]),
                window_elements_per_token=cast(int, found["window_growth"]),
                fixed_elements=cast(int, found["fixed"]),
                elements_at_context=cast(int, found["held"]),
            )
            for kind, found in sums.items()
        },
    )


def cache_sums(layers: Iterable[tuple[Sequence[Cache], int]], *, context: int) -> dict[str, CacheSums]:
    """What adds up over the caches of layers, by their kinds, in numbers of one sequence of `context` tokens."""
    sums: dict[str, CacheSums] = {}
    for caches, count in layers:
        for kind in dict.fromkeys(cache.kind for cache in caches):
            sums.setdefault(kind, defaultdict(int))["layers"] += count
        for cache in caches:
            found = sums[cache.kind]
            found["growth"] += cache.growth * count
            found["window_growth"] += cache.window_growth * count
            found["fixed"] += cache.fixed * count
            found["held"] += cache.held(context) * count
            found["reference_held"] += cache.reference_held(context) * count
            found["reserved"] += cache.reserved(context) * count
    return sums


class Stored(TypedDict):
    """The sizes that are the same for all kinds of cache."""

    elements_per_token: Exact
    bytes_per_token: Exact
    window_bytes_per_token: int
    fixed_state_bytes: int
    bytes_at_context: int
    reference_elements_at_context: int
    bytes_at_context_reserved: int


def stored_of(sums: Mapping[str, CacheSums], *, batch: int, bits: int, state_bits: int) -> Stored:
    """The sizes of caches whose numbers take `bits`, of recurrent states `state_bits`, from the sums of every kind."""

    def stored(what: str, sequences: int = 1) -> int:
        states = [cast(int, found[what]) for kind, found in sums.items() if kind == StateCache.kind]
        rows = [cast(int, found[what]) for kind, found in sums.items() if kind != StateCache.kind]
        return stored_bytes(sequences * sum(rows), bits) + stored_bytes(sequences * sum(states), state_bits)

    growth = sum((found["growth"] for found in sums.values()), Fraction(0))
    return Stored(
        elements_per_token=growth,
        bytes_per_token=Fraction(1, 8) * growth * bits,
        window_bytes_per_token=stored("window_growth"),
        fixed_state_bytes=stored("fixed"),
        bytes_at_context=stored("held", batch),
        reference_elements_at_context=batch * sum(cast(int, found["reference_held"]) for found in sums.values()),
        bytes_at_context_reserved=stored("reserved", batch),
    )


def plain(number: Exact) -> int | float:
    """A whole number as such: only a cache of compressed positions grows by parts of an element."""
    return int(number) if number.denominator == 1 else float(number)
