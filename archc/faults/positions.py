"""Faults of rotary and other positions, scalings left to scalings.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as replaced
from functools import partial
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Edit, Fault, Faulty, Layers, Slip
from archc.faults.sites import (
    Slips,
    attentions,
    by_layer,
    edit_slips,
    field_slips,
    filled,
    held,
    model_slips,
    parts,
    ropes,
    slips,
)
from archc.parts.attention import Attention
from archc.parts.base import MixerPart
from archc.parts.ends import Positions
from archc.parts.position import AlibiFields, Rope
from archc.parts.scaling import LongropeScaling

_USUAL_BASES = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 50_000.0, 5_000_000.0)
_PARTS_OF_HEADS = (1.0, 0.5, 0.25)
_FEW = 4
"""Kinds of layer whose positions others are tried with."""


def _ropes_of(architecture: Architecture) -> dict[Rope, str]:
    """The rotary positions in the model, each with the first kind of layer that has them."""
    found: dict[Rope, str] = {}
    for layer in architecture.layers:
        for mixer in layer.mixers():
            if mixer.rope is not None:
                found.setdefault(mixer.rope, layer.kind)
    return found


def _bases(architecture: Architecture) -> Iterator[Slip]:
    """The usual bases, and those of other layers."""
    bases = dict.fromkeys((*(rope.base for rope in _ropes_of(architecture)), *_USUAL_BASES))
    yield from field_slips(ropes, "base", lambda rope: (base for base in bases if base != rope.base))(architecture)


def _unrotated(rope: Rope) -> Iterator[tuple[str, None]]:
    del rope
    yield "none", None


def _parts_of_head(rope: Rope) -> Iterator[tuple[str, Rope]]:
    """A share of the channels; where all turn, only half of them, which is a default elsewhere."""
    if isinstance(rope.scaling, LongropeScaling):
        return  # its tables have a divisor for every pair
    for share in _PARTS_OF_HEADS if rope.rotary_dim < rope.head_dim else _PARTS_OF_HEADS[1:2]:
        channels = int(rope.head_dim * share)
        if channels and channels % 2 == 0:
            yield f"{share:g}", replace(rope, rotary_dim=channels)


def _spread(rope: Rope) -> Iterator[tuple[str, Rope]]:
    """Frequencies base^(-2i/d) with all d channels of the head, of which few turn."""
    if rope.rotary_dim < rope.head_dim and rope.scaling is None:
        yield f"base^(-2i/{rope.head_dim})", replace(rope, base=rope.base ** (rope.rotary_dim / rope.head_dim))


# Which layers have which positions.


def _with_rope(mixer: Any, rope: Rope | None) -> Any:
    """A mixer with other rotary positions, where they fit its heads and it is one that may have them."""
    if not isinstance(mixer, MixerPart) or not hasattr(mixer, "rope"):
        return mixer
    own = mixer.rope
    if rope is not None and rope.head_dim != (own.head_dim if own else getattr(mixer, "head_dim", None)):
        return mixer
    return replace(mixer, rope=rope)


def _unmoving(architecture: Architecture) -> list[int]:
    """Layers of attention whose heads do not turn."""
    return [
        index
        for index, layer in enumerate(architecture.layers)
        if any(isinstance(mixer, Attention) and mixer.position_kind is None for mixer in layer.mixers())
    ]


def _turned(architecture: Architecture) -> Iterator[Slip]:
    """Layers without positions have those of others."""
    still, found = _unmoving(architecture), _ropes_of(architecture)
    for rope, kind in list(found.items())[:_FEW] if still else ():

        def change(faulty: Faulty, layers: Layers, rope: Rope = rope) -> Faulty:
            chosen = frozenset(still) if layers is None else layers & frozenset(still)
            return by_layer(faulty, chosen, lambda _index, layer: attentions(layer, lambda a: _with_rope(a, rope)))

        yield Slip("none", "rope" if len(found) == 1 else f"rope, as in {kind} layers", change, tuple(still))


def _as_in_other_layers(architecture: Architecture) -> Iterator[Slip]:
    """All layers have the positions of one kind, where kinds differ; or every layer has those of its neighbour."""
    found, count = _ropes_of(architecture), len(architecture.layers)
    own = [next((mixer.rope for mixer in layer.mixers()), None) for layer in architecture.layers]
    if len({*own}) < 2:
        return

    def each(given: list[Rope | None]) -> Callable[[Faulty, Layers], Faulty]:
        def in_layer(index: int, layer: Layer) -> Layer:
            return parts(layer, lambda part: _with_rope(part, given[index]))

        return lambda faulty, layers: by_layer(faulty, layers, in_layer)

    everywhere = tuple(range(count))
    if len({replace(rope, base=2.0) for rope in found}) > 1:  # else it is a wrong base
        for rope, kind in list(found.items())[:_FEW]:
            given: list[Rope | None] = [rope if one is not None else None for one in own]
            yield Slip("each kind its own", f"as in {kind} layers", each(given), everywhere)
    yield Slip("each kind its own", "one layer later", each([own[-1], *own[:-1]]), everywhere)
    yield Slip("each kind its own", "one layer earlier", each([*own[1:], own[0]]), everywhere)


# Positions that are added to the embedding, and biases by distance.


def _table(architecture: Architecture, other: Positions | None) -> Architecture:
    return replace(architecture, embedding=replace(architecture.embedding, table=other))


def _no_table(architecture: Architecture) -> Iterator[tuple[object, str, Architecture]]:
    table = architecture.embedding.table
    if table is not None:
        yield "learned" if table.learned else "sinusoidal", "none", _table(architecture, None)


def _offsets(architecture: Architecture) -> Iterator[Slip]:
    """Another first row; of a learned table one that leaves rows for all positions."""
    table = architecture.embedding.table
    if table is None or table.axes:
        return

    def change(faulty: Faulty, layers: Layers, offset: int) -> Faulty:
        del layers
        found = replaced(faulty, architecture=_table(faulty.architecture, replace(table, offset=offset)))
        if not table.learned:
            return found
        name = "position_embedding.weight"
        return filled(found, lambda weights: {name: weights[name][: table.count + offset]})

    for offset in (0, 1, 2):
        if offset < table.offset or (offset > table.offset and not table.learned):
            yield Slip(str(table.offset), str(offset), partial(change, offset=offset))


def _sinusoids(name: str, *values: str) -> Slips:
    def wrong(architecture: Architecture) -> Iterator[tuple[object, str, Architecture]]:
        table = architecture.embedding.table
        if table is not None and not table.learned:
            for value in values:
                yield getattr(table, name), value, _table(architecture, replace(table, **{name: value}))

    return model_slips(wrong)


def _max_biases(alibi: AlibiFields) -> Iterable[float]:
    return (8.0, 2 * alibi.max_bias)


def _uneven(architecture: Architecture) -> bool:
    """Whether some head count with biases by distance is no power of two."""
    counts = (part.heads for part in architecture.parts() if isinstance(part, Attention) and part.alibi is not None)
    return any(heads & (heads - 1) for heads in counts)


_EVEN_SLOPES = Edit(
    r"slopes_H = 2\.0 \*\* \(-max_bias / power \* torch\.cat\(\(whole, between\)\)\)",
    r"slopes_H = 2.0 ** (-max_bias / heads * torch.arange(1, heads + 1, device=device))",
)

FAULTS = (
    Fault(
        id="position.pairing",
        field="position.pairing",
        kind="architecture",
        wrong="Channels side by side turn together, where the weights were trained with halves; or the reverse.",
        when="layers with rotary positions",
        mend="rotate the pairs (i, i + d/2) for half, (2i, 2i + 1) for interleaved, or permute the rows of q and k",
        slips=field_slips(ropes, "pairing", lambda rope: ("half", "interleaved") if rope.pairs > 1 else ()),
        seen=("vllm-project/vllm-ascend#12765", "vllm-project/vllm#28968"),
        same_when="the rows of q and k are permuted to match",
    ),
    Fault(
        id="position.base",
        field="position.base",
        kind="architecture",
        wrong="The frequencies come of another base, often a library's default or that of another kind of layer.",
        when="layers with rotary positions",
        mend="take the base (rope_theta) from the resolved config, not from a default",
        slips=_bases,
        seen=("Lightning-AI/litgpt#2217",),
    ),
    Fault(
        id="position.kind",
        field="position.kind",
        kind="architecture",
        wrong="Queries and keys are not rotated at all.",
        when="layers with rotary positions",
        mend="rotate queries and keys before they meet",
        slips=slips(held("rope"), lambda _rope: "rope", _unrotated),
    ),
    Fault(
        id="position.kind.unmoving",
        field="position.kind",
        kind="architecture",
        wrong="Queries and keys are rotated in layers that have no positions.",
        when="models some of whose layers have no positions",
        mend="read the list of layers that do not rotate; some references fix it without a key in config.json",
        slips=_turned,
        seen=("timtoole02/Camelid#535",),
    ),
    Fault(
        id="position.layers",
        field="position",
        kind="architecture",
        wrong="Layers have the base and the scaling of another kind of layer, or of the layer before or behind.",
        when="models whose layers differ in their positions",
        mend="choose base and scaling by the kind of each layer, counted from 0",
        slips=_as_in_other_layers,
        seen=("Blaizzy/mlx-vlm#1709",),
    ),
    Fault(
        id="position.partial",
        field="position.partial",
        kind="architecture",
        wrong="More or fewer channels of a head turn than declared.",
        when="layers with rotary positions",
        mend="read partial_rotary_factor from the resolved config: the class may have a default that config.json hides",
        slips=slips(ropes, lambda rope: rope.rotary_dim / rope.head_dim, _parts_of_head),
        seen=("ml-explore/mlx-lm#1698",),
    ),
    Fault(
        id="position.partial.frequencies",
        field="position.partial",
        kind="architecture",
        wrong="The frequencies of the channels that turn are spread over all channels of the head.",
        when="rotary positions of a part of the channels",
        mend="in base^(-2i/d), d is the number of channels that turn",
        slips=slips(ropes, lambda rope: f"base^(-2i/{rope.rotary_dim})", _spread),
    ),
    Fault(
        id="position.direction",
        field="position.direction",
        kind="architecture",
        wrong="Channels turn the other way round: the sine has the wrong sign.",
        when="layers with rotary positions",
        mend="turn (a, b) to (a·cos - b·sin, b·cos + a·sin), or the other way round where the reference does",
        slips=field_slips(ropes, "direction", lambda rope: ("forward", "backward")),
    ),
    Fault(
        id="position.kind.added",
        field="position.kind",
        kind="architecture",
        wrong="No positions are added to the embedded tokens.",
        when="learned or sinusoidal positions",
        mend="add the row of each position to the embedded token",
        slips=model_slips(_no_table),
    ),
    Fault(
        id="position.offset",
        field="position.offset",
        kind="architecture",
        wrong="Positions are counted from another row of the table than declared.",
        when="learned positions with rows in front that none uses, or sinusoidal ones",
        mend="add the offset of the family to every position",
        slips=_offsets,
    ),
    Fault(
        id="position.layout",
        field="position.layout",
        kind="architecture",
        wrong="Sines and cosines alternate where all sines come first, or the reverse.",
        when="sinusoidal positions",
        mend="lay out sines and cosines as the reference does",
        slips=_sinusoids("layout", "interleaved", "blocks"),
    ),
    Fault(
        id="position.slowest",
        field="position.slowest",
        kind="architecture",
        wrong="The frequencies of sines end elsewhere than declared: at or before 1/10000.",
        when="sinusoidal positions",
        mend="divide by d / 2 or by d / 2 - 1, as the reference does",
        slips=_sinusoids("slowest", "open", "exact"),
    ),
    Fault(
        id="position.kind.distances",
        field="position.kind",
        kind="architecture",
        wrong="Scores do not fall with distance.",
        when="attention with biases by distance (ALiBi)",
        mend="add the slope of each head, times the distance, to its scores",
        slips=slips(held("alibi"), lambda _alibi: "alibi", lambda _alibi: [("none", None)]),
        seen=("keras-team/keras-hub#2862",),
    ),
    Fault(
        id="position.max_bias",
        field="position.max_bias",
        kind="architecture",
        wrong="The slopes of heads end at another power of two than declared.",
        when="attention with biases by distance (ALiBi)",
        mend="read the largest bias (alibi_bias_max) from the config; 8 is a default",
        slips=field_slips(held("alibi"), "max_bias", _max_biases),
    ),
    Fault(
        id="position.max_bias.heads",
        field="position.max_bias",
        kind="architecture",
        wrong="Slopes are 2^(-max_bias·h/n), though n heads are no power of two.",
        when="biases by distance of a number of heads that is no power of two",
        mend="take the slopes of the next lower power of two, and for the other heads those of every other head of "
        "twice as many",
        slips=edit_slips(_uneven, "by the next lower power of two", "2^(-max_bias·h/n)", _EVEN_SLOPES),
        seen=("ml-explore/mlx#3071",),
    ),
    Fault(
        id="position.scaled",
        field="position.scaled",
        kind="architecture",
        wrong="The scale of scores multiplies the biases by distance where it should not, or does not where it should.",
        when="attention with biases by distance (ALiBi)",
        mend="add distances to the scaled scores, or scale them together, as the reference does",
        slips=field_slips(held("alibi"), "scaled", lambda alibi: (not alibi.scaled,)),
    ),
)
