"""The report: every size of a model under keys that scripts may rely on.

Keys are stable; more may be added. Units: parameters, bytes, positions, operations.
"""

from __future__ import annotations

from collections import Counter
from typing import NotRequired, TypedDict, cast

from archc.analysis.cache import KvCache, cache_sizes
from archc.analysis.dtypes import stored_bytes
from archc.analysis.flops import Flops, forward_flops
from archc.analysis.layers import typical_layer
from archc.analysis.params import Block, Moe, Params, block_shares, count_params, expert_params, layer_params
from archc.analysis.rope import RopeSection, rope_section
from archc.architecture.model import Architecture, Layer
from archc.errors import UsageError


class AttentionShape(TypedDict):
    """Heads of the most common kind of layer."""

    heads: int
    kv_heads: int
    head_dim: int
    group_size: int
    """Query heads that share a key/value head."""


class FfnShape(TypedDict):
    """The feed-forward of the most common kind of layer; `width` is that of one expert in a mixture."""

    kind: str
    width: int


class Weights(TypedDict):
    """The weights in memory; `bytes` is params.total numbers of `dtype`."""

    dtype: str
    bytes: int


class Limits(TypedDict):
    """How far a model reaches, in positions."""

    hard_context: int | None
    """Rows of a learned table of positions: the model cannot go beyond. Null without one."""
    trained_context: int
    """The length before rotary positions are stretched (original_context); the spec's context without a stretch."""


class LayerRow(TypedDict):
    """One layer, for `--layers`."""

    index: int
    kind: str
    params: int
    active: int
    attention: AttentionShape
    ffn: FfnShape
    window: int | None
    kv_elements_per_position: int
    rope_base: float | None


class Report(TypedDict):
    """All figures about one model."""

    name: str
    family: str | None
    layers: int
    hidden_size: int
    vocab_size: int
    context: int
    dtype: str
    params: Params
    block: Block
    attention: AttentionShape
    ffn: FfnShape
    moe: NotRequired[Moe]
    kv_cache: KvCache
    weights: Weights
    flops: Flops
    rope: NotRequired[RopeSection]
    limits: Limits
    layer_kinds: NotRequired[dict[str, int]]
    """Layers of each kind, where there are several; `attention` and `ffn` are those of the most common one."""
    layer_table: NotRequired[list[LayerRow]]


def build_report(
    architecture: Architecture,
    *,
    context: int | None = None,
    batch: int = 1,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    layers: bool = False,
) -> Report:
    """All figures about `architecture`.

    `context` (positions; by default the spec's) and `batch` (sequences) size the cache and the arithmetic. `dtype`
    and `kv_dtype` are the types of weights and cache, by default the one that the spec publishes its weights in.
    `layers` adds the table of layers. Raises UsageError for a context beyond a learned table of positions.
    """
    length = context or architecture.context
    _refuse_beyond_table(architecture, length)
    params = count_params(architecture)
    moe = expert_params(architecture)
    rope = rope_section(architecture, context=length)
    weights_dtype = dtype or architecture.dtype
    typical = typical_layer(architecture)
    assert typical is not None  # a spec has at least one layer
    report = Report(
        name=architecture.name,
        family=architecture.family,
        layers=len(architecture.layers),
        hidden_size=architecture.hidden_size,
        vocab_size=architecture.vocab_size,
        context=architecture.context,
        dtype=architecture.dtype,
        params=params,
        block=block_shares(architecture),
        attention=_attention(typical),
        ffn=_ffn(typical),
        kv_cache=cache_sizes(architecture, context=length, batch=batch, dtype=kv_dtype or architecture.dtype),
        weights=Weights(dtype=weights_dtype, bytes=stored_bytes(params["total"], weights_dtype)),
        flops=forward_flops(architecture, context=length),
        limits=_limits(architecture),
    )
    if moe:
        report["moe"] = moe
    if rope:
        report["rope"] = rope
    kinds = Counter(layer.kind for layer in architecture.layers)
    if len(kinds) > 1:
        report["layer_kinds"] = dict(kinds)
    if layers:
        report["layer_table"] = [_row(index, layer) for index, layer in enumerate(architecture.layers)]
    return cast(Report, {key: report[key] for key in Report.__annotations__ if key in report})  # type: ignore[literal-required]


def _refuse_beyond_table(architecture: Architecture, context: int) -> None:
    rows = architecture.embedding.positions
    if rows is not None and context > rows:
        raise UsageError(
            f"{architecture.name} has a learned table of {rows:,} positions and none for a context of {context:,}",
            f"ask for a context of at most {rows}",
        )


def _attention(layer: Layer) -> AttentionShape:
    mixer = layer.mixer
    return AttentionShape(
        heads=mixer.heads, kv_heads=mixer.kv_heads, head_dim=mixer.head_dim, group_size=mixer.group_size
    )


def _ffn(layer: Layer) -> FfnShape:
    return FfnShape(kind=layer.ffn.kind, width=layer.ffn.width)


def _limits(architecture: Architecture) -> Limits:
    ropes = {layer.mixer.rope for layer in architecture.layers} - {None}
    stated = [length for rope in ropes if rope and (length := rope.original_context) is not None]
    return Limits(
        hard_context=architecture.embedding.positions,
        trained_context=min(stated, default=architecture.context),
    )


def _row(index: int, layer: Layer) -> LayerRow:
    total, active = layer_params(layer)
    found = [cache for branch in layer.branches if (cache := branch.part.cache()) is not None]
    return LayerRow(
        index=index,
        kind=layer.kind,
        params=total,
        active=active,
        attention=_attention(layer),
        ffn=_ffn(layer),
        window=next((cache.window for cache in found if cache.window is not None), None),
        kv_elements_per_position=sum(cache.elements for cache in found),
        rope_base=layer.mixer.rope.base if layer.mixer.rope else None,
    )
