"""The report: every size of a model under keys that scripts may rely on.

Keys are stable; more may be added. Units: parameters, bytes, positions, operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import NotRequired, TypedDict, cast

from archc.analysis.cache import KvCache, cache_sizes, fold_caches, layer_caches, plain
from archc.analysis.fits import Fits, what_fits
from archc.analysis.flops import Flops, forward_flops
from archc.analysis.layers import typical_layer
from archc.analysis.ordered import ordered
from archc.analysis.params import Block, Moe, Params, block_shares, count_params, expert_params, layer_params
from archc.analysis.rope import RopeSection, rope_section
from archc.analysis.weights import Weights, weight_sizes
from archc.architecture.model import Architecture, Layer
from archc.errors import UsageError
from archc.parts.caches import SlidingCache


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
    gated: bool
    activation: str | None
    """Null for a part that has none to choose."""


class Limits(TypedDict):
    """How far a model reaches, in positions."""

    hard_context: int | None
    """Rows of a learned table of positions: the model cannot go beyond. Null without one."""
    trained_context: int
    """As the spec states it; else the length before rotary positions are stretched (original_context), or context."""


class LayerRow(TypedDict):
    """One layer, for `--layers`."""

    index: int
    kind: str
    params: int
    active: int
    mixer: str | None
    """The kinds of its mixers, with + between several."""
    attention: AttentionShape | None
    ffn: FfnShape | None
    window: int | None
    """Positions that a query sees as they are, its own included; of its chunk, where it sees that."""
    kv_elements_per_position: int | float
    """What a position costs, for as long as the layer remembers it."""
    state_elements: int
    """What it remembers whatever the length."""
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
    tied: bool
    """Whether the head is the embedding."""
    norms: list[str]
    """Kinds of norm on the residual stream."""
    positions: list[str]
    """How positions are told apart: learned, sinusoidal, rope, alibi, buckets; empty where no part is told."""
    params: Params
    block: Block
    mixers: dict[str, int]
    """Layers that have a mixer of each kind, where positions meet."""
    attention: NotRequired[AttentionShape]
    """Absent in a model without attention, as `ffn` is in one without feed-forwards."""
    ffn: NotRequired[FfnShape]
    moe: NotRequired[Moe]
    kv_cache: KvCache
    weights: Weights
    flops: Flops
    rope: NotRequired[RopeSection]
    limits: Limits
    fits: NotRequired[Fits]
    undeclared: NotRequired[list[str]]
    """What the reference does and the spec cannot say; the sizes hold all the same."""
    notes: NotRequired[list[str]]
    """What importing says of the config: that its text model alone is counted, that its weights are quantised."""
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
    state_dtype: str | None = None,
    layers: bool = False,
    fits: int | None = None,
) -> Report:
    """All figures about `architecture`.

    `context` (positions; by default the spec's) and `batch` (sequences) size the cache and the arithmetic. `dtype`
    and `kv_dtype` are the types of weights and cache, by default the one that the spec publishes its weights in;
    `state_dtype` is that of recurrent states, by default the cache's.
    `layers` adds the table of layers, `fits` what fits into so many bytes. Raises UsageError for a context beyond a
    learned table of positions.
    """
    length = context or architecture.context
    _refuse_beyond_table(architecture, length)
    weights_dtype, cache_dtype = dtype or architecture.dtype, kv_dtype or architecture.dtype
    stored = {"dtype": cache_dtype, "state_dtype": state_dtype or cache_dtype}
    params = count_params(architecture)
    report = Report(
        name=architecture.name,
        family=architecture.family,
        layers=architecture.depth,
        hidden_size=architecture.hidden_size,
        vocab_size=architecture.vocab_size,
        context=architecture.context,
        dtype=architecture.dtype,
        tied=architecture.head.tied,
        norms=list(dict.fromkeys(_norms(architecture))),
        positions=list(dict.fromkeys(_positions(architecture))),
        params=params,
        block=block_shares(architecture),
        mixers=_mixers(architecture),
        kv_cache=cache_sizes(architecture, context=length, batch=batch, **stored),
        weights=weight_sizes(architecture, total=params["total"], dtype=weights_dtype),
        flops=forward_flops(architecture, context=length),
        limits=Limits(
            hard_context=architecture.embedding.positions,
            trained_context=architecture.trained_context or architecture.context,
        ),
    )
    _add_what_there_is(report, architecture, length)
    if fits is not None:
        report["fits"] = what_fits(
            fits,
            report["weights"]["bytes"],
            fold_caches(architecture, **stored),
            context=length,
            batch=batch,
            wall=report["limits"]["hard_context"],
            trained=report["limits"]["trained_context"],
        )
    if layers:
        report["layer_table"] = _rows(architecture)
    return ordered(report, Report)


def _add_what_there_is(report: Report, architecture: Architecture, context: int) -> None:
    """Add what not every model has: attention, feed-forwards, experts, rotary positions, several kinds of layer."""
    attending = typical_layer(architecture, lambda layer: _attention(layer) is not None)
    if attending and (heads := _attention(attending)):
        report["attention"] = heads
    feeding = typical_layer(architecture, lambda layer: layer.ffn is not None)
    if feeding and (shape := _ffn(feeding)):
        report["ffn"] = shape
    if moe := expert_params(architecture):
        report["moe"] = moe
    if rope := rope_section(architecture, context=context):
        report["rope"] = rope
    if architecture.undeclared:
        report["undeclared"] = list(architecture.undeclared)
    kinds = Counter(layer.kind for layer in architecture.layers)
    if len(kinds) > 1:
        report["layer_kinds"] = dict(kinds)


def _refuse_beyond_table(architecture: Architecture, context: int) -> None:
    rows = architecture.embedding.positions
    if rows is not None and context > rows:
        raise UsageError(
            f"{architecture.name} has a learned table of {rows:,} positions and none for a context of {context:,}",
            f"ask for a context of at most {rows}",
        )


def _attention(layer: Layer) -> AttentionShape | None:
    shape = next((mixer.shape for mixer in layer.mixers() if mixer.shape), None)
    if shape is None:
        return None
    return AttentionShape(
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        group_size=shape.heads // shape.kv_heads,
    )


def _ffn(layer: Layer) -> FfnShape | None:
    part = layer.ffn
    if part is None:
        return None
    return FfnShape(kind=part.kind, width=part.width, gated=part.gated, activation=part.activation)


def _mixers(architecture: Architecture) -> dict[str, int]:
    found: Counter[str] = Counter()
    for layer, layers in architecture.distinct:
        for kind in dict.fromkeys(mixer.kind for mixer in layer.mixers()):
            found[kind] += layers
    return dict(found)


def _norms(architecture: Architecture) -> Iterator[str]:
    for layer, _ in architecture.distinct:
        found = [layer.shared_norm, *(norm for b in layer.branches for norm in (b.pre_norm, b.post_norm))]
        yield from (norm.kind for norm in found if norm)
    if architecture.final_norm:
        yield architecture.final_norm.kind


def _positions(architecture: Architecture) -> Iterator[str]:
    table = architecture.embedding.table
    if table:
        yield "learned" if table.learned else "sinusoidal"
    for layer, _ in architecture.distinct:
        for mixer in layer.mixers():
            if mixer.position_kind:
                yield mixer.position_kind


def _rows(architecture: Architecture) -> list[LayerRow]:
    """The table of layers; equal layers are folded once."""
    known = {id(layer): _row(layer) for layer, _ in architecture.distinct}
    return [cast(LayerRow, {**known[id(layer)], "index": index}) for index, layer in enumerate(architecture.layers)]


def _row(layer: Layer) -> LayerRow:
    total, active = layer_params(layer)
    caches = layer_caches(layer)
    found = list(layer.mixers())
    return LayerRow(
        index=0,
        kind=layer.kind,
        params=total,
        active=active,
        mixer=" + ".join(mixer.kind for mixer in found) or None,
        attention=_attention(layer),
        ffn=_ffn(layer),
        window=next((mixer.window for mixer in found if mixer.window), None)
        or next((cache.window for cache in caches if isinstance(cache, SlidingCache)), None),
        kv_elements_per_position=plain(sum((cache.growth + cache.window_growth for cache in caches), Fraction(0))),
        state_elements=sum(cache.fixed for cache in caches),
        rope_base=next((mixer.rope.base for mixer in found if mixer.rope), None),
    )
