"""Multi-head latent attention: keys and values are made of one narrow latent (MLA; DeepSeek-V2, Liu et al. 2024).

The latent of `kv_rank` channels and one rotary key of `rope_dim` channels, which all heads share, are all that is kept
for a position. Queries may come from a latent of their own (transformers 5.24,
models/deepseek_v3/modeling_deepseek_v3.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from msgspec import Meta
from msgspec.structs import replace

from archc.parts.attention_sections import GateFields, Sinks
from archc.parts.base import (
    Fields,
    Finding,
    Heads,
    Keys,
    MixerPart,
    PartFields,
    Positive,
    Settled,
    Size,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.caches import Cache, Exact, LatentCache, SlidingCache
from archc.parts.indexer import INDEX_CONVENTION, Indexer, IndexerFields
from archc.parts.norm import InnerNormFields, Norm
from archc.parts.position import AlibiFields, BucketFields, Rope, RopeFields
from archc.parts.scaling import YarnScaling

Channels = Annotated[int, Meta(gt=0, le=2**16)]
LatentProjection = Literal["q", "q_down", "q_up", "kv_down", "kv_up", "o"]


class LatentGateFields(GateFields, frozen=True, kw_only=True):
    """`attention.gate` of latent attention."""

    source: Annotated[
        Literal["input", "latent"],
        Meta(description="What the gate is projected from: the layer's input, or what queries are made of."),
    ] = "input"


class LatentFields(PartFields, frozen=True, kw_only=True):
    """`attention: {kind: mla}`."""

    kind: Literal["mla"]
    heads: Annotated[Size, Meta(description="Heads, each with keys and values of its own, made of the latent.")]
    q_rank: Annotated[
        Size | None,
        Meta(description="Channels of the latent of queries; projected from the input directly unless stated."),
    ] = None
    kv_rank: Annotated[Size, Meta(description="Channels of the latent of keys and values. The cache grows with it.")]
    nope_dim: Annotated[
        Channels, Meta(description="Channels of a query or key that are made of the latent and never turn.")
    ]
    rope_dim: Annotated[
        Channels,
        Meta(
            description="Channels of a query or key by which positions act. Keys share one, beside the latent in the "
            "cache."
        ),
    ]
    value_dim: Annotated[Channels, Meta(description="Channels of a value.")]
    bias: Annotated[
        Literal["none"] | Annotated[tuple[LatentProjection, ...], Meta(min_length=1)],
        Meta(
            description="Projections with a bias: none, or a list of q (direct), q_down and q_up (into and out of the "
            "latent), kv_down, kv_up, o."
        ),
    ] = "none"
    scale: Annotated[
        Positive | None,
        Meta(
            description="Multiplies query-key products; (nope_dim + rope_dim)^-0.5 unless stated, times the square of "
            "0.1·mscale_all_dim·ln(factor) + 1 where yarn states mscale_all_dim."
        ),
    ] = None
    window: Annotated[
        Size | None, Meta(description="Positions that a query sees, its own included; all earlier ones unless stated.")
    ] = None
    latent_norm: Annotated[
        InnerNormFields, Meta(description="The norm of both latents, before keys, values and queries are made.")
    ] = InnerNormFields()
    rope_key_norm: Annotated[
        InnerNormFields | None, Meta(description="A norm on the shared rotary key, before it turns.")
    ] = None
    q_latent_scale: Annotated[Positive | None, Meta(description="Multiplies the normed latent of queries.")] = None
    kv_latent_scale: Annotated[
        Positive | None, Meta(description="Multiplies the normed latent of keys and values.")
    ] = None
    q_latent: Annotated[
        Literal["normed", "normed_and_raw"],
        Meta(description="What queries are made of: the normed latent, or it and the latent itself, side by side."),
    ] = "normed"
    sinks: Annotated[Sinks, Meta(description="A learned logit per head that takes weight from all keys.")] = "none"
    gate: Annotated[LatentGateFields | None, Meta(description="A learned factor on the output of the heads.")] = None
    indexer: Annotated[IndexerFields | None, Meta(description="Chooses the keys that a query meets.")] = None

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """Positions fit the rotary channels, and biases and inputs name what there is."""
        if around.position is not None:
            yield from around.position.check(replace(around, head_dim=self.rope_dim))
        if isinstance(around.position, AlibiFields | BucketFields):
            yield Finding(
                "E211",
                ("position", "kind"),
                "the scores of latent attention have no place for biases by distance",
                "use rope, or positions that are added to the embedding",
            )
        missing = {"q_down", "q_up"} if self.q_rank is None else {"q"}
        if odd := sorted(missing & set(self.bias if isinstance(self.bias, tuple) else ())):
            yield Finding(
                "E211",
                ("attention", "bias"),
                f"there is no projection {odd[0]} {'without' if self.q_rank is None else 'with'} q_rank",
                "name q, or with q_rank q_down and q_up",
            )
        latent = {
            "q_latent": self.q_latent != "normed",
            "q_latent_scale": self.q_latent_scale is not None,
            "gate": self.gate is not None and self.gate.source == "latent",
        }
        for name in (name for name, used in latent.items() if used and self.q_rank is None):
            yield Finding(
                "E211", ("attention", name), f"{name} needs a latent of queries, which is missing", "state q_rank"
            )

    def build(self, around: Settled) -> LatentAttention:
        """The attention that the fields declare."""
        position, q_rank = around.position, self.q_rank
        rope_norm = self.rope_key_norm
        return LatentAttention(
            fields=self,
            hidden_size=around.hidden_size,
            biased=() if isinstance(self.bias, str) else tuple(p for p in get_args(LatentProjection) if p in self.bias),
            scale=self.scale or (self.nope_dim + self.rope_dim) ** -0.5 * _yarn_square(position),
            rope=position.build(self.rope_dim, around.context) if position else None,
            q_norm=self.latent_norm.build(around.norm, q_rank) if q_rank else None,
            kv_norm=self.latent_norm.build(around.norm, self.kv_rank),
            rope_key_norm=rope_norm.build(around.norm, self.rope_dim) if rope_norm else None,
            indexer=self.indexer.build(around, q_rank or around.hidden_size) if self.indexer else None,
        )


def _yarn_square(position: Fields | None) -> float:
    """The temperature that yarn's mscale_all_dim asks of the scores.

    0.1·mscale_all_dim·ln(factor) + 1 stands for sqrt(1/t) of Peng et al. (2023), so that scores take its square
    (transformers 5.24, models/deepseek_v3/modeling_deepseek_v3.py, yarn_apply_mscale).
    """
    scaling = position.scaling if isinstance(position, RopeFields) else None
    if not isinstance(scaling, YarnScaling) or not scaling.mscale_all_dim:
        return 1.0
    return (0.1 * scaling.mscale_all_dim * math.log(scaling.factor) + 1) ** 2


class LatentAttention(MixerPart, frozen=True):
    """Attention of `heads` queries over keys and values that are made of a latent."""

    fields: LatentFields
    hidden_size: int
    biased: tuple[LatentProjection, ...]
    scale: float
    rope: Rope | None
    q_norm: Norm | None
    kv_norm: Norm
    rope_key_norm: Norm | None
    indexer: Indexer | None

    kind = "mla"
    partial = "latent.py.j2"

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the arithmetic of latents counts."""
        lines = (
            "latent attention makes keys and values of every token once; in decode_per_token queries meet the cached "
            "latents themselves, with that product absorbed into queries and outputs",
        )
        if self.indexer is None:
            return lines
        return (*lines, INDEX_CONVENTION)

    @property
    def window(self) -> int | None:
        """Positions that a query sees at most; None where it sees all earlier ones."""
        return self.fields.window

    @property
    def head_dim(self) -> int:
        """Channels over which a query meets a key."""
        return self.fields.nope_dim + self.fields.rope_dim

    @property
    def shape(self) -> Heads:
        """Every head has keys and values of its own."""
        return Heads(self.fields.heads, self.fields.heads, self.head_dim)

    @property
    def head_norms(self) -> tuple[Norm, ...]:
        """The norms of what queries, keys and values are made of, and of the rotary key."""
        return tuple(norm for norm in (self.q_norm, self.kv_norm, self.rope_key_norm) if norm)

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        unusual = {
            "attention.sinks": self.fields.sinks != "none",
            "attention.indexer": self.indexer is not None,
        }
        return (
            *(name for name, is_so in unusual.items() if is_so),
            *(name for norm in self.head_norms for name in norm.ungenerated()),
        )

    @property
    def projections(self) -> dict[LatentProjection, tuple[int, int]]:
        """Output and input features of every projection that the part has."""
        f = self.fields
        found: dict[LatentProjection, tuple[int, int]] = {}
        if f.q_rank is None:
            found["q"] = (f.heads * self.head_dim, self.hidden_size)
        else:
            found["q_down"] = (f.q_rank, self.hidden_size)
            found["q_up"] = (f.heads * self.head_dim, self._q_input)
        found["kv_down"] = (f.kv_rank + f.rope_dim, self.hidden_size)
        found["kv_up"] = (f.heads * (f.nope_dim + f.value_dim), f.kv_rank)
        return found | {"o": (self.hidden_size, f.heads * f.value_dim)}

    @property
    def _q_input(self) -> int:
        """Channels that queries are made of."""
        rank = self.fields.q_rank
        return self.hidden_size if rank is None else rank * (1 if self.fields.q_latent == "normed" else 2)

    def tensors(self) -> tuple[Tensor, ...]:
        """The projections [out, in], the norms of both latents and of the rotary key, sinks, gate and indexer."""
        f, tensors = self.fields, list[Tensor]()
        for name, (out, into) in self.projections.items():
            tensors += linear(name, out, into, name in self.biased, "attention")
        for norm_name, norm in (("q_norm", self.q_norm), ("kv_norm", self.kv_norm), ("k_norm", self.rope_key_norm)):
            tensors += norm.tensors(norm_name) if norm else ()
        if f.sinks != "none":
            tensors.append(Tensor("sinks", (f.heads,), "attention"))
        if f.gate:
            tensors += linear("gate", *self._gate, f.gate.bias, "attention")
        return (*tensors, *(self.indexer.tensors() if self.indexer else ()))

    @property
    def _gate(self) -> tuple[int, int]:
        """Output and input features of the gate."""
        f = self.fields
        assert f.gate is not None
        out = f.heads * (1 if f.gate.over == "head" else f.value_dim)
        return out, self._q_input if f.gate.source == "latent" else self.hidden_size

    def caches(self) -> tuple[Cache, ...]:
        """The latent and the rotary key: kv_rank + rope_dim numbers per position; beside them the index keys."""
        f = self.fields
        elements = f.kv_rank + f.rope_dim
        own: Cache = SlidingCache(elements, f.window) if f.window else LatentCache(elements)
        return (own, *(self.indexer.caches() if self.indexer else ()))

    def linear_flops(self) -> int:
        """The projections, two operations per weight. Absorbed or not, kv_up costs a token the same.

        Absorbed (DeepSeek-V2, section 2.1.2), a query turns its nope_dim channels into kv_rank, and an output its
        kv_rank into value_dim: 2 × heads × kv_rank × (nope_dim + value_dim), as if kv_up made keys and values of it.
        """
        weights = sum(out * into for out, into in self.projections.values())
        gate = math.prod(self._gate) if self.fields.gate else 0
        return 2 * (weights + gate) + (self.indexer.linear_flops() if self.indexer else 0)

    def mixing_flops(self, keys: Keys) -> Exact:
        """Scores and weighted values. Softmax and mask are left out.

        Per key 2 × heads × (nope_dim + rope_dim + value_dim). In decoding the key is a latent, which is the value as
        well: 2 × heads × (kv_rank + rope_dim + kv_rank).
        """
        f = self.fields
        width = 2 * f.kv_rank + f.rope_dim if keys.decoding else self.head_dim + f.value_dim
        met = keys(min(f.window or self.indexer.chosen, self.indexer.chosen)) if self.indexer else keys(f.window)
        return 2 * f.heads * width * met + (self.indexer.mixing_flops(keys) if self.indexer else 0)
