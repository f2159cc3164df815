"""Floating-point operations of a forward pass.

A matrix product of [m, k] and [k, n] takes 2·m·k·n operations: a multiply-add is two. Everything else (norms, softmax,
activations, rotations, sorting tokens by expert) is left out, as in Kaplan et al. (2020) and in PaLM's appendix B.
That it is small can be seen from its order: it grows with the width of a layer, a product with its square.
"""

from __future__ import annotations

from typing import TypedDict

from archc.architecture.model import Architecture
from archc.parts.base import Cache, Part
from archc.parts.experts import Experts


class Flops(TypedDict):
    """Operations of one sequence; a batch takes as many times more."""

    forward_per_token: int
    """Averaged over the tokens of a sequence of `context`: token i meets i keys, itself included, or its window."""
    prefill_full_square: int
    """All `context` tokens at once, with every query-key pair counted, also those that the mask removes."""
    context: int
    conventions: list[str]


def forward_flops(architecture: Architecture, *, context: int) -> Flops:
    """Fold the parts of `architecture` into operations, for a sequence of `context` tokens."""
    parts: list[Part] = [branch.part for layer in architecture.layers for branch in layer.branches]
    linear = architecture.head.linear_flops() + sum(part.linear_flops() for part in parts)
    causal = sum(part.mixing_flops(mean_keys(part.cache(), context)) for part in parts)
    square = sum(part.mixing_flops(context) for part in parts)
    return Flops(
        forward_per_token=round(linear + causal),
        prefill_full_square=round(context * (linear + square)),
        context=context,
        conventions=_conventions(architecture),
    )


def mean_keys(cache: Cache | None, context: int) -> float:
    """Keys that a token meets, averaged over a sequence of `context` tokens; none where nothing is remembered."""
    return 0.0 if cache is None else cache.mean_keys(context)


def _conventions(architecture: Architecture) -> list[str]:
    """What the figures count, for readers who compare them with others."""
    lines = [
        "only matrix products are counted, a multiply-add as two operations",
        "the head is counted for every token; looking up embeddings is not",
        "forward_per_token averages over the sequence: a token meets the keys up to its own, or its window",
        "prefill_full_square counts every query-key pair, as operator counters do, also those that the mask removes",
        "norms, softmax, activations, rotations and masks are left out",
    ]
    if any(isinstance(layer.ffn, Experts) for layer in architecture.layers):
        lines.append("the router and the chosen experts are counted; sorting tokens by expert and adding up are not")
    return lines
