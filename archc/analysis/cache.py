"""What a model remembers from token to token: the KV cache.

The logical size: every layer holds what it needs for the next token, nothing rounded up to pages. A full layer keeps
a row for every position, a layer with a window of W the last W. Beside it stand two sizes that people meet in
practice: what transformers' own cache object holds, and what an engine allocates that gives every layer full pages
(without the rounding to whole pages, which depends on the engine).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from archc.analysis.dtypes import stored_bytes
from archc.architecture.model import Architecture
from archc.parts.base import Cache


class KvCache(TypedDict):
    """Sizes of the cache. `elements` are numbers; `…_at_context` are for `batch` sequences of `context` tokens."""

    dtype: str
    elements_per_token: int
    """What one more token costs once every window is full: only layers without a window grow then."""
    bytes_per_token: int
    window_bytes_per_token: int
    """What one more token costs besides, in layers with a window, until their windows are full."""
    fixed_state_bytes: int
    """States that do not grow with the context."""
    bytes_at_context: int
    context: int
    batch: int
    reference_elements_at_context: int
    """What transformers' own cache object holds; the rule is that of each kind of cache (`archc/parts/base.py`)."""
    bytes_at_context_reserved: int
    """What engines allocate that give every layer, windowed or not, a row for every position."""


def caches(architecture: Architecture) -> Iterator[Cache]:
    """The cache of every part of every layer that has one."""
    for layer in architecture.layers:
        for branch in layer.branches:
            cache = branch.part.cache()
            if cache is not None:
                yield cache


def cache_sizes(architecture: Architecture, *, context: int, batch: int, dtype: str) -> KvCache:
    """Fold the caches of `architecture` into sizes; keys and values are stored as `dtype`."""
    found = list(caches(architecture))
    growing = sum(cache.elements for cache in found if cache.window is None)
    windowed = sum(cache.elements for cache in found if cache.window is not None)
    logical = sum(cache.elements * cache.positions(context) for cache in found)
    reference = sum(cache.elements * cache.reference_positions(context) for cache in found)
    return KvCache(
        dtype=dtype,
        elements_per_token=growing,
        bytes_per_token=stored_bytes(growing, dtype),
        window_bytes_per_token=stored_bytes(windowed, dtype),
        fixed_state_bytes=0,
        bytes_at_context=stored_bytes(batch * logical, dtype),
        context=context,
        batch=batch,
        reference_elements_at_context=batch * reference,
        bytes_at_context_reserved=stored_bytes(batch * context * (growing + windowed), dtype),
    )
