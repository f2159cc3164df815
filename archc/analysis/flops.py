"""Floating-point operations of a forward pass.

A matrix product of [m, k] and [k, n] takes 2·m·k·n operations: a multiply-add is two. Everything else (norms, softmax,
activations, rotations, sorting tokens by expert) is left out, as in Kaplan et al. (2020) and in PaLM's appendix B.
That it is small can be seen from its order: it grows with the width of a layer, a product with its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypedDict

from msgspec import Struct

from archc.architecture.model import Architecture
from archc.parts.base import Keys


class MeanKeys(Struct, frozen=True):
    """Keys that a query meets, averaged over a causal sequence of `context` tokens."""

    context: int
    decoding: ClassVar[bool] = False

    def __call__(self, window: int | None = None, chunk: int | None = None) -> float:
        """The n-th token meets n keys, itself included, or its window, or those since its chunk began.

        Window W: the first W tokens meet W(W + 1) / 2 in all, the other C - W meet W each. Chunk K: every whole chunk
        is a sequence of its own.
        """
        if chunk is not None and chunk < self.context:
            whole, rest = divmod(self.context, chunk)
            return (whole * chunk * (chunk + 1) + rest * (rest + 1)) / 2 / self.context
        full = self.context if window is None else min(window, self.context)
        return (full * (full + 1) / 2 + (self.context - full) * full) / self.context

    def entries(self, rate: int, most: int | None = None) -> float:
        """The n-th token meets floor(n / rate) entries, or `most`.

        Every number of entries below the last is met by `rate` tokens; the last by the token that completes it and
        those after it.
        """
        whole, rest = divmod(self.context, rate)
        bound = whole if most is None else min(whole, most)
        below = min(bound, max(whole - 1, 0))
        before = below * (below + 1) / 2 + (max(whole - 1, 0) - below) * bound
        return (rate * before + (rest + 1) * bound) / self.context


class LastKeys(Struct, frozen=True):
    """Keys that the last of `context` tokens meets: those of one step of decoding."""

    context: int
    decoding: ClassVar[bool] = True

    def __call__(self, window: int | None = None, chunk: int | None = None) -> float:
        """All, or the window, or what the current chunk holds, which is counted as a whole one."""
        return min(self.context, window or self.context, chunk or self.context)

    def entries(self, rate: int, most: int | None = None) -> float:
        """All, or `most` of them."""
        return min(self.context // rate, most or self.context)


class AllKeys(Struct, frozen=True):
    """Every query-key pair of `context` tokens, also those that the mask removes."""

    context: int
    decoding: ClassVar[bool] = False

    def __call__(self, window: int | None = None, chunk: int | None = None) -> float:
        """All, whatever the mask."""
        del window, chunk
        return self.context

    def entries(self, rate: int, most: int | None = None) -> float:
        """All, whatever is chosen."""
        del most
        return self.context // rate


class Flops(TypedDict):
    """Operations of one sequence; a batch takes as many times more."""

    forward_per_token: int
    """Averaged over the tokens of a sequence of `context`: token i meets i keys, itself included, or its window."""
    decode_per_token: int
    """One step of decoding behind `context` tokens: the token meets them all, or its window."""
    prefill_full_square: int
    """All `context` tokens at once, with every query-key pair counted, also those that the mask removes."""
    context: int
    conventions: list[str]


def forward_flops(architecture: Architecture, *, context: int) -> Flops:
    """Fold the parts of `architecture` into operations, for a sequence of `context` tokens."""
    parts = [(part, layers) for layer, layers in architecture.distinct for part in layer.parts()]
    linear = (
        architecture.embedding.linear_flops() + architecture.head.linear_flops() + architecture.linear_flops_around()
    )
    linear += sum(part.linear_flops() * layers for part, layers in parts)

    def mixing(keys: Keys) -> float:
        return sum(part.mixing_flops(keys) * layers for part, layers in parts)

    return Flops(
        forward_per_token=round(linear + mixing(MeanKeys(context))),
        decode_per_token=round(linear + mixing(LastKeys(context))),
        prefill_full_square=round(context * (linear + mixing(AllKeys(context)))),
        context=context,
        conventions=list(_conventions(architecture)),
    )


def _conventions(architecture: Architecture) -> Iterator[str]:
    """What the figures count, for readers who compare them with others."""
    yield "only matrix products are counted, a multiply-add as two operations"
    yield "the head is counted for every token; looking up embeddings is not"
    yield "forward_per_token averages over the sequence: a token meets the keys up to its own, or its window"
    yield "decode_per_token is the last token's: it meets the whole context, or its window"
    yield "prefill_full_square counts every query-key pair, as operator counters do, also those that the mask removes"
    yield "norms, softmax, activations, rotations and masks are left out"
    if any(layer.ffn is not None and layer.ffn.routed for layer, _ in architecture.distinct):
        yield "the router and the chosen experts are counted; sorting tokens by expert and adding up are not"
    yield from dict.fromkeys(
        line for layer, _ in architecture.distinct for part in layer.parts() for line in part.conventions
    )
