"""Softmax attention with grouped key/value heads (Vaswani et al. 2017; Ainslie et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from archc.parts.base import (
    Cache,
    Fields,
    Finding,
    FullCache,
    Positive,
    Settled,
    Size,
    SlidingCache,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.norm import Norm, NormFields, NormKind, WeightConvention
from archc.parts.position import Rope

Projection = Literal["q", "k", "v", "o"]
PROJECTIONS: tuple[Projection, ...] = get_args(Projection)
Grouping = Literal["interleaved", "tiled"]


class QKNormFields(Fields):
    """`attention.qk_norm`: a norm on queries and keys. What it does not state, it takes from `norm`."""

    over: Literal["head", "width"] = Field(
        description="head: each head's channels alone; width: all heads of the projection together."
    )
    order: Literal["before_rope", "after_rope"] = Field(
        default="before_rope", description="Whether queries and keys are normed before or after they rotate."
    )
    kind: NormKind | None = Field(default=None, description="As norm.kind, which is the default.")
    eps: Positive | None = Field(default=None, description="As norm.eps, which is the default.")
    weight: WeightConvention | None = Field(default=None, description="As norm.weight, which is the default.")
    bias: bool | None = Field(default=None, description="As norm.bias, which is the default.")

    def build(self, norm: NormFields, heads: int, head_dim: int) -> Norm:
        """The norm of `heads` heads of `head_dim` channels; what the fields leave open is as in `norm`."""
        return Norm(
            kind=self.kind or norm.kind,
            size=head_dim if self.over == "head" else heads * head_dim,
            eps=self.eps or norm.eps,
            weight=self.weight or norm.weight,
            bias=norm.bias if self.bias is None else self.bias,
        )


class AttentionFields(Fields):
    """`attention:` of a spec."""

    kind: Literal["gqa"] = Field(default="gqa", description="Softmax attention; kv_heads says how heads are shared.")
    heads: Size = Field(description="Query heads.")
    kv_heads: Size | None = Field(
        default=None, description="Key/value heads; equal to heads unless stated. The cache grows with them."
    )
    head_dim: Annotated[int, Field(gt=0, le=2**16)] | None = Field(
        default=None, description="Channels per head; hidden_size / heads unless stated. It is a number of its own."
    )
    grouping: Grouping = Field(
        default="interleaved",
        description="Which query heads share a key/value head: interleaved, neighbours (query head h uses h // group); "
        "tiled, query head h uses h % kv_heads. Weights are trained for one of them.",
    )
    bias: Literal["none", "all"] | Annotated[tuple[Projection, ...], Field(strict=False, min_length=1)] = Field(
        default="none", description="Projections with a bias: none, all, or a list such as [q, k, v]."
    )
    scale: Positive | None = Field(
        default=None, description="Multiplies query-key products; head_dim^-0.5 unless stated."
    )
    window: Size | None = Field(
        default=None, description="Positions that a query sees, its own included; all earlier ones unless stated."
    )
    softcap: Positive | None = Field(
        default=None, description="Attention logits become softcap·tanh(logits / softcap) before the mask."
    )
    qk_norm: QKNormFields | None = Field(default=None, description="A norm on queries and keys.")

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Equal groups, a head size that can be known, and positions that fit it."""
        kv_heads = self.kv_heads or self.heads
        if self.heads % kv_heads:
            yield Finding(
                "E201",
                ("attention", "kv_heads"),
                f"{self.heads} query heads cannot share {kv_heads} key/value heads in equal groups",
                f"choose a divisor of {self.heads}",
            )
        head_dim = self._head_dim_in(around.hidden_size)
        if head_dim is not None and around.position is not None:
            yield from around.position.check(replace(around, head_dim=head_dim))
        elif head_dim is None and around.hidden_size is not None:
            yield Finding(
                "E203",
                ("attention", "heads"),
                f"hidden_size {around.hidden_size} is not a multiple of {self.heads} heads, and head_dim is not stated",
                "state attention.head_dim",
            )

    def build(self, around: Settled) -> Attention:
        """The attention that the fields declare."""
        heads, kv_heads, head_dim = self.heads, self.kv_heads or self.heads, self._head_dim_in(around.hidden_size)
        assert head_dim is not None  # E203
        biased: tuple[Projection, ...]
        biased = {"none": (), "all": PROJECTIONS}[self.bias] if isinstance(self.bias, str) else self.bias
        qk = self.qk_norm
        return Attention(
            hidden_size=around.hidden_size,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            grouping=self.grouping,
            biased=tuple(projection for projection in PROJECTIONS if projection in biased),
            scale=self.scale or head_dim**-0.5,
            window=self.window,
            softcap=self.softcap,
            q_norm=qk.build(around.norm, heads, head_dim) if qk else None,
            k_norm=qk.build(around.norm, kv_heads, head_dim) if qk else None,
            qk_norm_over=qk.over if qk else "head",
            qk_norm_order=qk.order if qk else "before_rope",
            rope=around.position.build(head_dim, around.context) if around.position else None,
        )

    def _head_dim_in(self, hidden_size: int | None) -> int | None:
        """Channels of a head, where they can be known."""
        if self.head_dim is not None or hidden_size is None or hidden_size % self.heads:
            return self.head_dim
        return hidden_size // self.heads


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of `heads` queries over `kv_heads` keys and values of `head_dim` channels each."""

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    grouping: Grouping
    biased: tuple[Projection, ...]
    scale: float
    window: int | None
    softcap: float | None
    q_norm: Norm | None
    k_norm: Norm | None
    qk_norm_over: Literal["head", "width"]
    qk_norm_order: Literal["before_rope", "after_rope"]
    rope: Rope | None

    role: ClassVar[Literal["mixer"]] = "mixer"
    slot = "attention"
    partial = "attention.py.j2"

    @property
    def group_size(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def q_width(self) -> int:
        """Output features of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Output features of the key projection, and of the value projection."""
        return self.kv_heads * self.head_dim

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v, o and the norms of q and k."""
        widths = {"q": self.q_width, "k": self.kv_width, "v": self.kv_width}
        tensors: list[Tensor] = []
        for projection in PROJECTIONS:
            out, into = widths.get(projection, self.hidden_size), self.hidden_size
            if projection == "o":
                into = self.q_width
            tensors += linear(projection, out, into, projection in self.biased, "attention")
        for name, norm in (("q_norm", self.q_norm), ("k_norm", self.k_norm)):
            tensors += norm.tensors(name) if norm else ()
        return tuple(tensors)

    def cache(self) -> Cache:
        """Keys and values: 2 × kv_heads × head_dim numbers per position."""
        elements = 2 * self.kv_width
        return SlidingCache(elements, self.window) if self.window else FullCache(elements)

    def linear_flops(self) -> int:
        """Four projections, two operations per weight."""
        return 2 * self.hidden_size * (2 * self.q_width + 2 * self.kv_width)

    def mixing_flops(self, keys: float) -> float:
        """Scores and weighted values: 2 × 2 × heads × head_dim per key. Softmax and mask are left out."""
        return 4 * self.q_width * keys
