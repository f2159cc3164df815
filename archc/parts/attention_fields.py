"""What a spec says of softmax attention with grouped key/value heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.additions import ADAPTER_DOC, AttentionFactorFields
from archc.parts.attention import Attention
from archc.parts.attention_paths import DistanceBiasFields, KvConvFields
from archc.parts.attention_sections import (
    PROJECTIONS,
    DynamicMaskFields,
    Grouping,
    HeadGateFields,
    Kv,
    Projection,
    QKNormFields,
    QueryScaleFields,
    Sinks,
)
from archc.parts.base import Finding, PartFields, Positive, Settled, Size, Surroundings
from archc.parts.differential import DifferentialAttention
from archc.parts.indexer import IndexerFields
from archc.parts.norm import Norm, NormFields
from archc.parts.position import AlibiFields, BucketFields


class AttentionFields(PartFields, frozen=True, kw_only=True):
    """`attention:` of a spec."""

    also_reads = ("stream_and_embedding",)
    kind: Annotated[Literal["gqa"], Meta(description="Softmax attention; kv_heads says how heads are shared.")] = "gqa"
    heads: Annotated[Size, Meta(description="Query heads.")]
    kv_heads: Annotated[
        Size | None, Meta(description="Key/value heads; equal to heads unless stated. The cache grows with them.")
    ] = None
    head_dim: Annotated[
        Annotated[int, Meta(gt=0, le=2**16)] | None,
        Meta(description="Channels per head; hidden_size / heads unless stated. It is a number of its own."),
    ] = None
    value_dim: Annotated[
        Annotated[int, Meta(gt=0, le=2**16)] | None,
        Meta(description="Channels of a value head; head_dim unless stated."),
    ] = None
    grouping: Annotated[
        Grouping,
        Meta(
            description="Which query heads share a key/value head: interleaved, neighbours (query head h uses h // "
            "group); tiled, query head h uses h % kv_heads. Weights are trained for one of them."
        ),
    ] = "interleaved"
    bias: Annotated[
        Literal["none", "all"] | Annotated[tuple[Projection, ...], Meta(min_length=1)],
        Meta(description="Projections with a bias: none, all, or a list such as [q, k, v]."),
    ] = "none"
    scale: Annotated[
        Positive | None, Meta(description="Multiplies query-key products; head_dim^-0.5 unless stated.")
    ] = None
    window: Annotated[
        Size | None, Meta(description="Positions that a query sees, its own included; all earlier ones unless stated.")
    ] = None
    window_rows: Annotated[
        Literal["dropped", "kept"],
        Meta(
            description="What the reference does with rows that have left the window: it drops them from its cache, or "
            "hides them behind the mask."
        ),
    ] = "dropped"
    chunk: Annotated[
        Size | None, Meta(description="A query sees the positions of its own chunk of this many, up to its own.")
    ] = None
    softcap: Annotated[
        Positive | None, Meta(description="Attention logits become softcap·tanh(logits / softcap) before the mask.")
    ] = None
    qk_norm: Annotated[QKNormFields | None, Meta(description="A norm on queries and keys.")] = None
    v_norm: Annotated[bool, Meta(description="Whether values pass through an rmsnorm without weight.")] = False
    clip: Annotated[
        Positive | None,
        Meta(description="Queries, keys and values are clamped to ± this, behind any norm, and before they rotate."),
    ] = None
    values: Annotated[
        Literal["projected", "keys"],
        Meta(description="keys: values are the keys, before their norm and rotation; nothing is projected."),
    ] = "projected"
    value_scale: Annotated[Positive | None, Meta(description="Multiplies the values.")] = None
    kv: Annotated[
        Kv,
        Meta(
            description="reused: keys and values are those of an earlier layer, and cost nothing here; not_kept: they "
            "are made for the positions at hand, and those of earlier positions are what a later pass of the layer has "
            "kept."
        ),
    ] = "own"
    sinks: Annotated[
        Sinks,
        Meta(
            description="A learned logit per head that takes weight from all keys: column, as one more column of the "
            "softmax; sigmoid, as sigmoid(logsumexp - sink) on the output; projected, as a column that is projected "
            "from the input."
        ),
    ] = "none"
    gate: Annotated[HeadGateFields | None, Meta(description="A learned factor on the output of the heads.")] = None
    output_norm: Annotated[
        bool, Meta(description="Whether a norm, as in norm, stands before the output projection.")
    ] = False
    factors: Annotated[
        AttentionFactorFields | None, Meta(description="Constants that multiply what flows through the attention.")
    ] = None
    length_limit: Annotated[
        Positive | None,
        Meta(
            description="Queries, after a learned factor per channel of every head, and keys are shortened to at most "
            "this length."
        ),
    ] = None
    inputs: Annotated[
        Literal["one", "three"],
        Meta(
            description="three: keys and values are projected from inputs of their own, each behind a norm of its own."
        ),
    ] = "one"
    distance_bias: Annotated[DistanceBiasFields | None, Meta(description="A learned bias by distance.")] = None
    kv_conv: Annotated[KvConvFields | None, Meta(description="Convolutions on keys and values.")] = None
    adapter_rank: Annotated[Size | None, Meta(description=ADAPTER_DOC.format(projections="q, k and v"))] = None
    query_scale: Annotated[QueryScaleFields | None, Meta(description="Queries grow with their position.")] = None
    query_factor: Annotated[
        Positive | None,
        Meta(
            description="A learned number for every channel of every query, times this, then squared, multiplies it "
            "after rotating."
        ),
    ] = None
    differential: Annotated[
        bool,
        Meta(
            description="Whether the outputs of the first half of the heads lose lambda times those of the second (Ye "
            "et al. 2024): heads pair up, each pair attends with values of both, and is normed without weight, then "
            "times 1 - l. lambda = exp(q1·k1) - exp(q2·k2) + l, four learned vectors; l = 0.8 - 0.6·exp(-0.3·layer)."
        ),
    ] = False
    dynamic_mask: Annotated[DynamicMaskFields | None, Meta(description="Values decide which keys are seen.")] = None
    indexer: Annotated[IndexerFields | None, Meta(description="Chooses the keys that a query meets.")] = None
    reference_heads: Annotated[
        Literal["kv_heads", "heads"],
        Meta(
            description="What transformers' cache stores: the heads of keys and values, or a copy for every query head."
        ),
    ] = "kv_heads"

    @property
    def readings(self) -> int:
        """Inputs that streams may mix in ways of their own."""
        return 3 if self.inputs == "three" else 1

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
        if self.differential and kv_heads % 2:
            yield Finding(
                "E201",
                ("attention", "kv_heads"),
                f"{kv_heads} key/value heads do not pair up for differential attention",
                "choose an even number",
            )
        head_dim = self._head_dim_in(around.hidden_size)
        if self.values == "keys" and head_dim is not None and self.value_dim not in (None, head_dim):
            yield Finding(
                "E201",
                ("attention", "value_dim"),
                f"values are keys, which have {head_dim} channels, not {self.value_dim}",
                "leave value_dim out",
            )
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
        qk, value_dim = self.qk_norm, self.value_dim or head_dim
        attention = Attention(
            hidden_size=around.hidden_size,
            input_size=around.input_size,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            value_dim=value_dim,
            grouping=self.grouping,
            biased=tuple(projection for projection in PROJECTIONS if projection in biased),
            scale=self.scale or head_dim**-0.5,
            window=self.window,
            window_rows=self.window_rows,
            chunk=self.chunk,
            softcap=self.softcap,
            q_norm=qk.over_heads(around.norm, heads, head_dim) if qk else None,
            k_norm=qk.over_heads(around.norm, kv_heads, head_dim) if qk and self.kv != "reused" else None,
            qk_norm_over="width" if qk and qk.over == "width" else "head",
            qk_norm_order=qk.order if qk else "before_rope",
            rope=around.position.build(head_dim, around.context) if around.position else None,
            alibi=around.position if isinstance(around.position, AlibiFields) else None,
            bucket_biases=around.position.rows if isinstance(around.position, BucketFields) else 0,
            v_norm=self._v_norm(around.norm, value_dim),
            clip=self.clip,
            values=self.values,
            value_scale=self.value_scale,
            kv=self.kv,
            sinks=self.sinks,
            gate=self.gate,
            output_norm=around.norm.build(heads * value_dim) if self.output_norm else None,
            factors=self.factors if self.factors != AttentionFactorFields() else None,
            adapter_rank=self.adapter_rank,
            length_limit=self.length_limit,
            input_norm=around.norm.build(around.input_size) if self.inputs == "three" else None,
            distance_bias=self.distance_bias,
            kv_conv=self.kv_conv,
            query_scale=self.query_scale,
            query_factor=self.query_factor,
            dynamic_mask=self.dynamic_mask,
            indexer=self.indexer.build(around, around.input_size) if self.indexer else None,
            copies=heads // kv_heads if self.reference_heads == "heads" else 1,
        )
        return DifferentialAttention.of(attention, around.norm) if self.differential else attention

    def _v_norm(self, norm: NormFields, value_dim: int) -> Norm | None:
        """The norm of values that are made here."""
        made = self.v_norm and self.kv != "reused"
        return Norm("rmsnorm", value_dim, norm.eps, "none", bias=False) if made else None

    def _head_dim_in(self, hidden_size: int | None) -> int | None:
        """Channels of a head, where they can be known."""
        if self.head_dim is not None or hidden_size is None or hidden_size % self.heads:
            return self.head_dim
        return hidden_size // self.heads
