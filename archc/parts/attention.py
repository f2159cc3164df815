"""Softmax attention with grouped key/value heads (Vaswani et al. 2017; Ainslie et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from archc.parts.additions import AttentionFactorFields, adapter
from archc.parts.attention_paths import DistanceBiasFields, KvConvFields
from archc.parts.attention_sections import (
    DynamicMaskFields,
    Grouping,
    HeadGateFields,
    Kv,
    Projection,
    QueryScaleFields,
    Sinks,
)
from archc.parts.base import Heads, Keys, MixerPart, Tensor, linear
from archc.parts.caches import Cache, ChunkedCache, CopiedCache, Exact, FullCache, MaskedCache, SlidingCache
from archc.parts.indexer import INDEX_CONVENTION, Indexer
from archc.parts.norm import Norm
from archc.parts.position import AlibiFields, Rope


class Attention(MixerPart, frozen=True):
    """Attention of `heads` queries over `kv_heads` keys and values of `head_dim` channels each."""

    hidden_size: int
    input_size: int
    """Channels that queries, keys and values are projected from."""
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    grouping: Grouping
    biased: tuple[Projection, ...]
    scale: float
    window: int | None
    window_rows: Literal["dropped", "kept"]
    chunk: int | None
    softcap: float | None
    q_norm: Norm | None
    k_norm: Norm | None
    qk_norm_over: Literal["head", "width"]
    qk_norm_order: Literal["before_rope", "after_rope"]
    rope: Rope | None
    v_norm: Norm | None
    clip: float | None
    values: Literal["projected", "keys"]
    value_scale: float | None
    kv: Kv
    sinks: Sinks
    gate: HeadGateFields | None
    output_norm: Norm | None
    factors: AttentionFactorFields | None
    adapter_rank: int | None
    length_limit: float | None
    input_norm: Norm | None
    """What stands before keys, and before values, where both have inputs of their own."""
    distance_bias: DistanceBiasFields | None
    kv_conv: KvConvFields | None
    query_scale: QueryScaleFields | None
    query_factor: float | None
    dynamic_mask: DynamicMaskFields | None
    indexer: Indexer | None
    copies: int
    """How often the reference's cache stores a key/value head."""
    alibi: AlibiFields | None
    """How logits fall with distance."""
    bucket_biases: int
    """Learned biases of a head, for buckets of distances."""

    kind = "gqa"
    partial = "attention.py.j2"

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the arithmetic counts, where the reference does more."""
        found = []
        if self.dynamic_mask:
            found.append("a dynamic mask: only the keys that it keeps are counted")
        if self.indexer:
            found.append(INDEX_CONVENTION)
        return tuple(found)

    @property
    def position_kind(self) -> str | None:
        """How it tells positions apart: rope, alibi or buckets."""
        if self.rope:
            return "rope"
        return "alibi" if self.alibi is not None else "buckets" if self.bucket_biases else None

    @property
    def head_norms(self) -> tuple[Norm, ...]:
        """The norms of its queries and keys."""
        return tuple(norm for norm in (self.q_norm, self.k_norm) if norm)

    @property
    def norms(self) -> dict[str, Norm]:
        """What it norms beside its input, by the names of the modules."""
        found = {"q_norm": self.q_norm, "k_norm": self.k_norm, "v_norm": self.v_norm, "output_norm": self.output_norm}
        return {name: norm for name, norm in found.items() if norm}

    @property
    def shows_beyond(self) -> tuple[tuple[str, int], ...]:
        """Window and chunk, and what grows with the number of columns."""
        found = super().shows_beyond
        if self.query_scale is None or self.query_scale.counts == "positions" or self.query_scale.form == "power":
            return found
        return (*found, ("attention.query_scale", self.query_scale.length))

    @property
    def bounded_logits(self) -> bool:
        """Whether queries and keys are normed, or what they meet in is capped or clamped."""
        normed = self.q_norm is not None and (self.k_norm is not None or self.kv == "reused")
        return normed or self.softcap is not None or self.clip is not None

    @property
    def idle_biases(self) -> tuple[Projection, ...]:
        """Biases that change no output: that of k, where all that follows is softmax.

        q·(k + b) = q·k + q·b, and q·b is the same for every key. Rotation, norm, cap and clip tell keys apart again; a
        sink has no such term; and where values are keys, the bias is one of values.
        """
        acts = self.bounded_logits or self.rope or self.k_norm or self.sinks != "none" or self.values == "keys"
        return () if acts or self.kv == "reused" or "k" not in self.biased else ("k",)

    @property
    def group_size(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def shape(self) -> Heads:
        """How queries share keys and values."""
        return Heads(self.heads, self.kv_heads, self.head_dim)

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        unusual = {
            "window with attention.chunk": self.window is not None and self.chunk is not None,
            "softcap with position.kind: alibi": self.softcap is not None and self.alibi is not None,
            "kv": self.kv != "own",
            "sinks: projected": self.sinks == "projected",
            "gate.factor": self.gate is not None and self.gate.factor is not None,
            "adapter_rank": self.adapter_rank is not None,
            "length_limit": self.length_limit is not None,
            "inputs": self.input_norm is not None,
            "distance_bias": self.distance_bias is not None,
            "kv_conv": self.kv_conv is not None,
            "query_factor": self.query_factor is not None,
            "indexer": self.indexer is not None,
        }
        found = [f"attention.{name}" for name, is_so in unusual.items() if is_so]
        if self.bucket_biases:
            found.append("position.kind: buckets")
        return (
            *found,
            *(name for norm in self.norms.values() for name in norm.ungenerated()),
        )

    @property
    def q_width(self) -> int:
        """Output features of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Output features of the key projection."""
        return self.kv_heads * self.head_dim

    @property
    def v_width(self) -> int:
        """Output features of the value projection."""
        return self.kv_heads * self.value_dim

    @property
    def o_width(self) -> int:
        """Input features of the output projection."""
        return self.heads * self.value_dim

    @property
    def projections(self) -> dict[Projection, tuple[int, int]]:
        """Output and input features of every projection that the part has."""
        found: dict[Projection, tuple[int, int]] = {"q": (self.q_width, self.input_size)}
        if self.kv != "reused":
            found["k"] = (self.kv_width, self.input_size)
            if self.values == "projected":
                found["v"] = (self.v_width, self.input_size)
        return found | {"o": (self.hidden_size, self.o_width)}

    def tensors(self) -> tuple[Tensor, ...]:
        """q, k, v, o, the norms of q and k, and what stands before the output projection."""
        tensors: list[Tensor] = []
        for name, (out, into) in self.projections.items():
            tensors += linear(name, out, into, name in self.biased, "attention")
        for owner, norm in self.norms.items():
            tensors += norm.tensors(owner)
        tensors += (*self._of_positions(), *self._of_inputs(), *self._of_output())
        if self.dynamic_mask:
            tensors.append(Tensor("mask_strength", (self.kv_heads,), "attention"))
            tensors += linear("mask", self.kv_heads, self.v_width, self.dynamic_mask.bias, "attention")
        return (*tensors, *self._adapters(), *(self.indexer.tensors() if self.indexer else ()))

    def _of_positions(self) -> Iterator[Tensor]:
        """Biases that depend on distance."""
        if self.bucket_biases:
            yield Tensor("bucket_bias", (self.bucket_biases, self.heads), "position", whole_model=True)
        if self.distance_bias:
            yield from self.distance_bias.tensors(self.heads, self.input_size)

    def _of_inputs(self) -> Iterator[Tensor]:
        """What queries, keys and values pass through beside their projections and norms."""
        if self.input_norm:
            yield from self.input_norm.tensors("k_input_norm")
            yield from self.input_norm.tensors("v_input_norm")
        if self.length_limit is not None:
            yield Tensor("length_factor", (self.heads, self.head_dim), "attention")
        if self.kv_conv:
            yield from self.kv_conv.tensors(self.kv_heads, self.head_dim, self.input_size)
        if self.query_factor is not None:
            yield Tensor("query_factor", (self.q_width,), "attention")

    def _of_output(self) -> Iterator[Tensor]:
        """Sinks, and the gate."""
        if self.sinks == "projected":
            yield from linear("sink", self.heads, self.input_size, False, "attention")
        elif self.sinks != "none":
            yield Tensor("sinks", (self.heads,), "attention")
        if self.gate:
            yield from linear("gate", self._gate_width, self.input_size, self.gate.bias, "attention")
            if self.gate.head_bias:
                yield Tensor("gate_bias", (self.heads,), "attention")
            if self.gate.factor is not None:
                yield Tensor("gate_factor", (self._gate_width,), "attention")

    def _adapters(self) -> tuple[Tensor, ...]:
        inward = [(name, *sizes) for name, sizes in self.projections.items() if name != "o"]
        found = (adapter(name, out, into, self.adapter_rank, "attention") for name, out, into in inward)
        return tuple(tensor for pair in found for tensor in pair)

    @property
    def _gate_width(self) -> int:
        if self.gate is None:
            return 0
        return self.heads if self.gate.over == "head" else self.o_width

    def caches(self) -> tuple[Cache, ...]:
        """Keys and values: kv_heads × (head_dim + value_dim) numbers per position."""
        if self.kv != "own":
            return ()
        found = self._cache(self.kv_width + self.v_width)
        beside = (
            *(self.indexer.caches() if self.indexer else ()),
            *(self.kv_conv.caches(self.kv_width) if self.kv_conv else ()),
        )
        return (found if self.copies == 1 else CopiedCache(found, self.copies), *beside)

    def _cache(self, elements: int) -> Cache:
        if self.chunk:
            return ChunkedCache(elements, self.chunk)
        if not self.window:
            return FullCache(elements)
        bounded = SlidingCache if self.window_rows == "dropped" else MaskedCache
        return bounded(elements, self.window)

    def linear_flops(self) -> int:
        """The projections, two operations per weight."""
        weights = sum(out * into for out, into in self.projections.values())
        weights += sum(tensor.size for tensor in self._adapters())
        if self.dynamic_mask:
            weights += self.kv_heads * self.v_width
        weights += (self._gate_width + (self.heads if self.sinks == "projected" else 0)) * self.input_size
        beside = self.indexer.linear_flops() if self.indexer else 0
        beside += self.distance_bias.linear_flops(self.heads, self.input_size) if self.distance_bias else 0
        beside += self.kv_conv.linear_flops(self.kv_heads, self.head_dim, self.input_size) if self.kv_conv else 0
        return 2 * weights + beside

    @property
    def weighed_width(self) -> int:
        """Channels of all the values that heads weigh."""
        return self.o_width

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values: 2 × heads × (head_dim + value_dim) per key. Softmax and mask are left out."""
        bounds = [self.window, self.dynamic_mask and self.dynamic_mask.keep, self.indexer and self.indexer.chosen]
        seen = min((bound for bound in bounds if bound), default=None)
        index = self.indexer.mixing_flops(keys) if self.indexer else 0
        return 2 * (self.q_width + self.weighed_width) * keys(seen, self.chunk) + index
