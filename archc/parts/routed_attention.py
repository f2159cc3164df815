"""Mixture of attention heads: experts for queries and outputs, keys and values for all (Zhang et al. 2022; JetMoe).

A router sends each token to `top_k` of `experts` pairs of a query and an output projection; each has one query head for
every key/value head, so a token has top_k × kv_heads query heads. From transformers 5.24, models/jetmoe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.base import (
    Finding,
    Heads,
    Keys,
    MixerPart,
    PartFields,
    Settled,
    Size,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.caches import Cache, Exact, FullCache
from archc.parts.norm import Norm
from archc.parts.position import AlibiFields, BucketFields, Rope
from archc.parts.router import RouterFields


class RoutedAttentionFields(PartFields, frozen=True, kw_only=True):
    """`attention: {kind: routed}`."""

    kind: Literal["routed"]
    experts: Annotated[Size, Meta(description="Pairs of a query and an output projection that a token can be sent to.")]
    top_k: Annotated[Size, Meta(description="Pairs that a token is sent to.")]
    kv_heads: Annotated[Size, Meta(description="Key/value heads, and query heads of one expert.")]
    head_dim: Annotated[int, Meta(gt=0, le=2**16, description="Channels per head.")]
    router: Annotated[RouterFields, Meta(description="How experts are chosen, and how their outputs are weighed.")]
    bias: Annotated[bool, Meta(description="Whether a bias is added to the sum of the experts' outputs.")] = False

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A token cannot use more experts than there are, and positions fit the heads."""
        if self.top_k > self.experts:
            yield Finding(
                "E204",
                ("attention", "top_k"),
                f"top_k {self.top_k} is more than the {self.experts} experts there are",
                f"choose top_k between 1 and {self.experts}",
            )
        else:
            yield from self.router.check_choice("attention", self.experts, self.top_k)
        if around.position is not None:
            yield from around.position.check(replace(around, head_dim=self.head_dim))
        if isinstance(around.position, AlibiFields | BucketFields):
            problem = "a mixture of heads adds nothing to the products of queries and keys"
            yield Finding("E211", ("position", "kind"), problem, "use rotary positions, or none")

    def build(self, around: Settled) -> RoutedAttention:
        """The mixture that the fields declare."""
        return RoutedAttention(
            hidden_size=around.hidden_size,
            experts=self.experts,
            top_k=self.top_k,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            router=self.router,
            router_norm=self.router.build_norm(around),
            bias=self.bias,
            rope=around.position.build(self.head_dim, around.context) if around.position else None,
        )


class RoutedAttention(MixerPart, frozen=True):
    """`experts` pairs of query and output projections around `kv_heads` keys and values of `head_dim` channels."""

    hidden_size: int
    experts: int
    top_k: int
    kv_heads: int
    head_dim: int
    router: RouterFields
    router_norm: Norm | None
    bias: bool
    rope: Rope | None

    partial = "routed_attention.py.j2"
    kind = "routed"
    conventions = ("routed attention: the chosen query and output projections are counted, and attend to all keys",)

    @property
    def shape(self) -> Heads:
        """How queries share keys and values."""
        return Heads(self.top_k * self.kv_heads, self.kv_heads, self.head_dim)

    @property
    def kv_width(self) -> int:
        """Output features of the key projection, of the value projection, and of one expert's query projection."""
        return self.kv_heads * self.head_dim

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        weighs = ("attention.router.weighs",) if self.router.weighs == "input" else ()
        return (*weighs, *self.router.ungenerated("attention"))

    def tensors(self) -> tuple[Tensor, ...]:
        """Router [E, D], q [E, W, D], o [E, D, W], k and v [W, D], with W = kv_heads × head_dim."""
        return (
            *self.router.tensors(self.hidden_size, self.experts, 0, self.top_k),
            Tensor("q", (self.experts, self.kv_width, self.hidden_size), "attention", self.top_k),
            Tensor("o", (self.experts, self.hidden_size, self.kv_width), "attention", self.top_k),
            *linear("k", self.kv_width, self.hidden_size, False, "attention"),
            *linear("v", self.kv_width, self.hidden_size, False, "attention"),
            *((Tensor("bias", (self.hidden_size,), "attention"),) if self.bias else ()),
        )

    def caches(self) -> tuple[Cache, ...]:
        """Keys and values: 2 × kv_heads × head_dim numbers per position."""
        return (FullCache(2 * self.kv_width),)

    def linear_flops(self) -> int:
        """The router, keys, values, and top_k pairs of projections, two operations per weight."""
        return 2 * self.hidden_size * (self.experts + 2 * self.kv_width * (1 + self.top_k))

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values: 2 × top_k × kv_heads × 2 × head_dim per key. Softmax and mask are left out."""
        return 4 * self.top_k * self.kv_width * keys()
