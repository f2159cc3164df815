"""Floating-point operations of a forward pass.

A matrix product of [m, k] and [k, n] takes 2·m·k·n operations: a multiply-add is two. Everything else (norms, softmax,
activations, rotations, sorting tokens by expert) is left out, as in Kaplan et al. (2020) and in PaLM's appendix B.
That it is small can be seen from its order: it grows with the width of a layer, a product with its square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import ClassVar, Final, TypedDict, cast

from msgspec import Struct

from archc.analysis.params import Sums
from archc.architecture.model import Architecture
from archc.parts.base import Part

CONVENTIONS: Final = (
    "only matrix products are counted, a multiply-add as two operations",
    "the head is counted for every token; looking up embeddings is not",
    "forward_per_token averages over the sequence: a token meets the keys up to its own, or its window",
    "decode_per_token is the last token's: it meets the whole context, or its window",
    "prefill_full_square counts every query-key pair, as operator counters do, also those that the mask removes",
    "norms, softmax, activations, rotations and masks are left out",
)
CONVENTION_OF_EXPERTS: Final = (
    "the router and the chosen experts are counted; sorting tokens by expert and adding up are not"
)
_HALF: Final = Fraction(1, 2)


class MeanKeys(Struct, frozen=True):
    """Keys that a query meets, averaged over a causal sequence of `context` tokens."""

    context: int
    decoding: ClassVar[bool] = False

    def __call__(self, window: int | None = None, chunk: int | None = None) -> Fraction:
        """The n-th token meets n keys, itself included, or its window, or those since its chunk began.

        Window W: the first W tokens meet W(W + 1) / 2 in all, the other C - W meet W each. Chunk K: every whole chunk
        is a sequence of its own.
        """
        if chunk is not None and chunk < self.context:
            whole, rest = divmod(self.context, chunk)
            return _HALF * (whole * chunk * (chunk + 1) + rest * (rest + 1)) / self.context
        full = self.context if window is None else min(window, self.context)
        return (_HALF * full * (full + 1) + (self.context - full) * full) / self.context

    def entries(self, rate: int, most: int | None = None) -> Fraction:
        """The n-th token meets floor(n / rate) entries, or `most`.

        Every number of entries below the last is met by `rate` tokens; the last by the token that completes it and
        those after it.
        """
        whole, rest = divmod(self.context, rate)
        bound = whole if most is None else min(whole, most)
        below = min(bound, max(whole - 1, 0))
        before = _HALF * below * (below + 1) + (max(whole - 1, 0) - below) * bound
        return (rate * before + (rest + 1) * bound) / self.context


class LastKeys(Struct, frozen=True):
    """Keys that the last of `context` tokens meets: those of one step of decoding."""

    context: int
    decoding: ClassVar[bool] = True

    def __call__(self, window: int | None = None, chunk: int | None = None) -> int:
        """All, or the window, or what the current chunk holds, which is counted as a whole one."""
        return min(self.context, window or self.context, chunk or self.context)

    def entries(self, rate: int, most: int | None = None) -> int:
        """All, or `most` of them."""
        return min(self.context // rate, most or self.context)


class AllKeys(Struct, frozen=True):
    """Every query-key pair of `context` tokens, also those that the mask removes."""

    context: int
    decoding: ClassVar[bool] = False

    def __call__(self, window: int | None = None, chunk: int | None = None) -> int:
        """All, whatever the mask."""
        del window, chunk
        return self.context

    def entries(self, rate: int, most: int | None = None) -> int:
        """All, whatever is chosen."""
        del most
        return self.context // rate


class Products(TypedDict):
    """Operations of one sequence; a batch takes as many times more."""

    forward_per_token: int
    """Averaged over the tokens of a sequence of `context`: token i meets i keys, itself included, or its window."""
    decode_per_token: int
    """One step of decoding behind `context` tokens: the token meets them all, or its window."""
    prefill_full_square: int
    """All `context` tokens at once, with every query-key pair counted, also those that the mask removes."""


class Flops(Products):
    """The same, with what they are figures of."""

    context: int
    conventions: list[str]


def forward_flops(architecture: Architecture, *, context: int) -> Flops:
    """Fold the parts of `architecture` into operations, for a sequence of `context` tokens."""
    around = architecture.embedding.linear_flops() + architecture.head.linear_flops()
    sums = product_sums(
        ((part, layers) for layer, layers in architecture.distinct for part in layer.parts()), context=context
    )
    sums["linear"] += around + architecture.linear_flops_around()
    return Flops(**products_of(sums, context=context), context=context, conventions=list(_conventions(architecture)))


def product_sums(parts: Iterable[tuple[Part, int]], *, context: int) -> Sums:
    """Operations of one token: in products with weights, and where it meets `context` tokens.

    What it meets as one of a sequence is summed over all tokens of that, so all are whole numbers.
    """
    sums: Sums = Counter()
    for part, layers in parts:
        sums["linear"] += part.linear_flops() * layers
        sums["over_sequence"] += cast(int, part.mixing_flops(MeanKeys(context)) * context) * layers
        sums["behind_context"] += cast(int, part.mixing_flops(LastKeys(context))) * layers
        sums["all_pairs"] += cast(int, part.mixing_flops(AllKeys(context))) * layers
    return sums


def products_of(sums: Sums, *, context: int) -> Products:
    """The figures of a sequence of `context` tokens, from the sums over all parts; halves are rounded up."""
    return Products(
        forward_per_token=(2 * (context * sums["linear"] + sums["over_sequence"]) + context) // (2 * context),
        decode_per_token=sums["linear"] + sums["behind_context"],
        prefill_full_square=context * (sums["linear"] + sums["all_pairs"]),
    )


def _conventions(architecture: Architecture) -> Iterator[str]:
    """What the figures count, for readers who compare them with others."""
    yield from CONVENTIONS
    if any(layer.ffn is not None and layer.ffn.routed for layer, _ in architecture.distinct):
        yield CONVENTION_OF_EXPERTS
    yield from dict.fromkeys(
        line for layer, _ in architecture.distinct for part in layer.parts() for line in part.conventions
    )
