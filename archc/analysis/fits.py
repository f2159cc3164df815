"""What fits into a given memory: the largest batch, and the largest context, beside the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypedDict

from archc.analysis.cache import CacheFold

MOST: Final = 2**40
"""What still fits beyond this many sequences or positions is said to have no limit."""

LEAVES_OUT: Final = (
    "activations and the workspace of kernels",
    "what the runtime and its graphs keep on the device",
    "rounding to pages, and layers with a window that an engine gives full pages",
    "scales and tables of quantised types",
)


class Fits(TypedDict):
    """What fits into `bytes` of memory. Null stands for no limit."""

    bytes: int
    weights_bytes: int
    weights_fit: bool
    remaining_bytes: int
    """What the weights leave for the cache; 0 when they do not fit."""
    largest_batch: int | None
    """Sequences of kv_cache.context tokens."""
    largest_context: int | None
    """Tokens of kv_cache.batch sequences: the most up to which every length fits, and positions are there."""
    within_trained_context: bool
    """Whether largest_context is within limits.trained_context."""
    leaves_out: list[str]


def what_fits(
    memory: int, weights: int, caches: CacheFold, *, context: int, batch: int, wall: int | None, trained: int
) -> Fits:
    """The figures for `memory` bytes and `weights` bytes of weights; `wall` is the number of positions, if limited."""
    left = max(0, memory - weights)
    sequences: int | None = 0
    tokens: int | None = 0
    if weights <= memory:
        sequences = _most(lambda count: caches.held(context, count) <= left)
        tokens = _longest(caches, batch, left)
        if wall is not None:
            tokens = wall if tokens is None else min(tokens, wall)
    return Fits(
        bytes=memory,
        weights_bytes=weights,
        weights_fit=weights <= memory,
        remaining_bytes=left,
        largest_batch=sequences,
        largest_context=tokens,
        within_trained_context=tokens is not None and tokens <= trained,
        leaves_out=list(LEAVES_OUT),
    )


def _longest(caches: CacheFold, batch: int, left: int) -> int | None:
    """The longest context up to which every length fits.

    Positions that wait to be condensed make a cache shrink at times. Bisection finds a length up to which all fit even
    if as many wait as can; from there the lengths are tried one by one.
    """
    waiting = caches.stored(lambda cache: cache.fixed if cache.growth else 0, batch)
    longest = _most(lambda length: caches.held(length, batch) + waiting <= left)
    if longest is None or not waiting:
        return longest
    while caches.held(longest + 1, batch) <= left:
        longest += 1
    return longest


def _most(fits: Callable[[int], bool]) -> int | None:
    """The largest number that fits, where all smaller ones do; None if any does."""
    if fits(MOST):
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
