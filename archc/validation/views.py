"""Activations as tensors by token, so that those of two models can be compared."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from archc.validation.tracing import order

SCORES = "mixer.scores"
"""Products of queries and keys, which are no point by themselves."""


def laid_out(point: str, points: Mapping[str, Tensor]) -> Tensor | None:
    """A point as [batch, tokens, …]; None where there is none."""
    found = points.get(point)
    if found is not None and found.ndim == 4 and point.endswith((".q", ".k", ".v")):
        return found.transpose(1, 2)
    return found


def scores(stem: str, points: Mapping[str, Tensor]) -> Tensor | None:
    """Products of queries and keys [batch, tokens, heads, keys], in units of their size.

    A factor that a class folds into its queries, and an order of channels that queries and keys share, do not show
    here: they are no mistakes by themselves.
    """
    q, k = points.get(f"{stem}q"), points.get(f"{stem}k")
    if q is None or k is None or q.ndim != 4 or k.ndim != 4 or q.shape[1] % k.shape[1] or q.shape[-1] != k.shape[-1]:
        return None
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    found = (q.float() @ k.float().transpose(-1, -2)).transpose(1, 2)
    return found / found.square().mean().sqrt().clamp(min=torch.finfo(torch.float32).tiny)


def by_token(points: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All points in the order of computation, with the scores of a layer behind its queries and keys."""
    found: dict[str, Tensor | None] = {}
    for point in order(points):
        found[point] = laid_out(point, points)
        stem, of_keys, _ = point.partition("mixer.k")
        if of_keys:
            found[f"{stem}{SCORES}"] = scores(f"{stem}mixer.", points)
    return {point: view for point, view in found.items() if view is not None}
