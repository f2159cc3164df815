"""Hashed n-grams: rows of a table for the last tokens, let into every stream where they match it.

From transformers 5.24, models/qwen4_exp/modeling_qwen4_exp.py, Qwen4ExpTextPLELayer and Qwen4ExpTextNGramEmbedding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Finding, Keys, MixerPart, PartFields, Settled, Size, Surroundings, Tensor
from archc.parts.caches import Cache, Exact, ReachCache
from archc.parts.recurrent import convolution, projection


class NgramFields(PartFields, frozen=True, kw_only=True):
    """`mixer: {kind: ngram}`.

    The last 2, 3, … up to `order` tokens are each hashed by `heads` functions, and the rows found are put side by side:
    e. With q the normed stream, k the normed key(e) of that stream and s = q·k / sqrt(D), value(e) · sigmoid(sign(s) ·
    sqrt|s|) is put out for every stream, and what a causal convolution (silu) makes of it, normed, is added. Rows are
    found by stored numbers: the token at each place times a factor, combined by exclusive or, modulo the rows of the
    hash function, behind those of the ones before it.
    """

    also_reads = ("streams",)
    kind: Literal["ngram"]
    order: Annotated[int, Meta(ge=2, le=64, description="Tokens of the longest n-gram.")]
    heads: Annotated[Size, Meta(description="Hash functions for the n-grams of each length.")]
    rows: Annotated[Size, Meta(description="Rows of the table, of all hash functions together.")]
    width: Annotated[Size, Meta(description="Channels of all rows that a token finds, side by side.")]
    kernel: Annotated[Size, Meta(description="Taps of the convolution, which are `order` positions apart.")]
    boundary: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Id of a token over which no n-gram reaches back.")
    ] = None

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """All hash functions find rows of equal width."""
        del around
        functions = (self.order - 1) * self.heads
        if self.width % functions:
            yield Finding(
                "E201",
                ("mixer", "width"),
                f"{self.width} channels cannot be shared equally by {functions} hash functions",
                f"choose a multiple of {functions}",
            )

    def build(self, around: Settled) -> Ngram:
        """The mixer that the fields declare."""
        return Ngram(self, around.hidden_size, around.input_size)


class Ngram(MixerPart, frozen=True):
    """A table of hashed n-grams, a key for every stream, one value, and a convolution over all streams."""

    fields: NgramFields
    hidden_size: int
    input_size: int
    """Channels of all streams together."""

    kind = "ngram"
    conventions = (
        "hashed n-grams: the ids of the last tokens are remembered and, being no numbers of the stream, not counted",
    )

    @property
    def functions(self) -> int:
        """Hash functions, each of which finds one row."""
        return (self.fields.order - 1) * self.fields.heads

    def tensors(self) -> tuple[Tensor, ...]:
        """The table, keys [n·D, width], value [D, width], three norms of n·D, taps, and the numbers that hash."""
        fields = self.fields
        return (
            Tensor("table.weight", (fields.rows, fields.width // self.functions), "embedding"),
            *projection("key", self.input_size, fields.width),
            *projection("value", self.hidden_size, fields.width),
            *(Tensor(f"{name}_norm.weight", (self.input_size,), "norm") for name in ("key", "query", "conv")),
            *convolution(self.input_size, fields.kernel, False),
            Tensor("multipliers", (fields.order,), "embedding", buffer=True),
            Tensor("sizes", (self.functions,), "embedding", buffer=True),
            Tensor("offsets", (self.functions,), "embedding", buffer=True),
        )

    def caches(self) -> tuple[Cache, ...]:
        """The inputs of the convolution."""
        return (ReachCache(self.input_size, (self.fields.kernel - 1) * self.fields.order),)

    def linear_flops(self) -> int:
        """Two operations per weight of the projections and the taps, and the products of queries and keys."""
        into = (self.input_size + self.hidden_size) * self.fields.width
        return 2 * (into + self.input_size * (self.fields.kernel + 1))

    def mixing_flops(self, keys: Keys) -> Exact:
        """Positions meet in the convolution alone, whose taps are counted as weights."""
        del keys
        return 0
