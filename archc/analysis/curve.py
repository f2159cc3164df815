"""The cache against the context: the figures behind a curve, from the same fold as those of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archc.analysis.cache import CacheFold, fold_caches
from archc.analysis.report import Report
from archc.architecture.model import Architecture
from archc.parts.caches import SlidingCache

_PER_OCTAVE = 4
_LEAST_OCTAVES = 8
_BEFORE = 8
"""A curve begins at a fraction of where something first happens: so it is seen what changes there."""
_MANY = 2**10


class CachePoint(NamedTuple):
    """Bytes that the cache needs after `context` tokens."""

    context: int
    bytes: int


class CacheCurve(NamedTuple):
    """How a model's cache grows, as its report sizes it.

    `points` reach up to the end of the axis, or to `wall`: the rows of a learned table of positions. `own` is at the
    context that the report is for.
    """

    name: str
    points: tuple[CachePoint, ...]
    own: CachePoint
    wall: int | None
    weights_bytes: int


def cache_curves(models: Sequence[tuple[Architecture, Report]]) -> list[CacheCurve]:
    """The curves of models, each for the batch and the types of its report, over the same contexts.

    They reach from before the first full window, and before rows weigh more than fixed states, to the next power of two
    after every context. There is a point at every power of two, three between any two, one where a window is full, and
    one at each report's context.
    """
    folds = [_fold(architecture, report) for architecture, report in models]
    contexts = [report["kv_cache"]["context"] for _, report in models]
    last = max(2, *(2 ** (context - 1).bit_length() for context in contexts))
    happens = min([*contexts, *(context for fold in folds for context in _bends(fold))])
    first = max(1, min(happens // _BEFORE, last >> _LEAST_OCTAVES))
    return [_curve(fold, report, first, last) for fold, (_, report) in zip(folds, models, strict=True)]


def _curve(fold: CacheFold, report: Report, first: int, last: int) -> CacheCurve:
    cache, wall = report["kv_cache"], report["limits"]["hard_context"]
    end = last if wall is None else min(last, wall)
    steps = (round(2 ** (number / _PER_OCTAVE)) for number in range(_PER_OCTAVE * last.bit_length()))
    contexts = {one for one in (first, *steps, *_windows(fold), cache["context"], end) if first <= one <= end}
    return CacheCurve(
        report["name"],
        tuple(CachePoint(context, fold.held(context, cache["batch"])) for context in sorted(contexts)),
        CachePoint(cache["context"], cache["bytes_at_context"]),
        wall,
        report["weights"]["bytes"],
    )


def _fold(architecture: Architecture, report: Report) -> CacheFold:
    cache = report["kv_cache"]
    return fold_caches(architecture, dtype=cache["dtype"], state_dtype=cache["state_dtype"])


def _bends(fold: CacheFold) -> list[int]:
    """Contexts at which something changes: a window is full, or rows are as large as fixed states."""
    fixed = fold.stored(lambda cache: cache.fixed)
    rows = fold.stored(lambda cache: cache.held(_MANY) - cache.fixed) if fixed else 0
    return [*_windows(fold), *([max(1, fixed * _MANY // rows)] if rows > 0 else [])]


def _windows(fold: CacheFold) -> list[int]:
    return [cache.window for cache, _ in fold.caches if isinstance(cache, SlidingCache)]
