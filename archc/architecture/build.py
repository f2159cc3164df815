"""From a checked spec to the Architecture: every default becomes a value. Nothing can fail here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from archc.architecture.model import Architecture, Branch, Claim, Layer
from archc.parts.base import Part, Settled
from archc.parts.ends import Positions
from archc.parts.norm import Norm
from archc.parts.position import AxialFields, LearnedFields, PositionFields, SinusoidalFields
from archc.parts.streams import Streams
from archc.spec.language import BranchFields, Header, LayerFields, Spec


def build(spec: Spec) -> Architecture:
    """The Architecture of a spec that has passed all checks."""
    depth = len(spec.pattern)
    layers = {kind: build_layer(kind, fields, spec.header, depth) for kind, fields in spec.kinds.items()}
    ends = build_ends(spec.header, spec.kinds.values(), layers.values(), depth)
    return replace(ends, layers=tuple(layers[kind] for kind in spec.pattern))


def build_layer(kind: str, fields: LayerFields, header: Header, depth: int) -> Layer:
    """One kind of layer of a model that has `depth` of them."""
    streams = header.streams.build(header.hidden_size) if header.streams else None
    placement = next((branch.norm.placement for branch in fields.branches if branch.norm), "pre")
    slots: Counter[str] = Counter()
    shared = fields.branches[0].norm if placement == "parallel" else None
    return Layer(
        kind=kind,
        branches=tuple(_branch(branch, header, depth, streams, slots) for branch in fields.branches),
        parallel=placement in ("parallel", "parallel_separate"),
        shared_norm=shared.build(header.hidden_size) if shared else None,
        streams=streams,
    )


def _branch(fields: BranchFields, header: Header, depth: int, streams: Streams | None, slots: Counter[str]) -> Branch:
    """A branch; `slots` counts the names that the layer's earlier branches have taken."""
    norm, placement = fields.norm, fields.norm.placement if fields.norm else ""
    beside = {"stream_and_embedding": 2, "streams": header.streams.count if header.streams else 1}
    input_size = header.hidden_size * beside.get(fields.reads, 1)
    around = Settled(
        hidden_size=header.hidden_size,
        context=header.context,
        norm=norm or header.norm,
        position=fields.position,
        layers=depth,
        embedding=header.embedding,
        input_size=input_size,
    )
    parts: list[tuple[str, Part]] = []
    for section, declared in fields.parts.items():
        slots[section] += 1
        number = slots[section]
        parts.append((section if number == 1 else f"{section}_{number}", declared.build(around)))
    before, after = (norm.build(size) if norm else None for size in (input_size, header.hidden_size))
    return Branch(
        parts=tuple(parts),
        pre_norm=before if placement in ("pre", "sandwich", "parallel_separate") else None,
        post_norm=after if placement in ("post", "sandwich", "post_sum") else None,
        residual=fields.residual.build(header.hidden_size),
        shared=fields.shared,
        reads_embedding=fields.reads == "stream_and_embedding",
        reads_last_input=fields.reads == "last_input",
        streams=None if fields.reads in ("streams", "unmixed") else streams,
        readings=max((declared.readings for declared in fields.parts.values()), default=1),
        norm_on_sum=placement == "post_sum",
    )


def build_ends(header: Header, kinds: Iterable[LayerFields], layers: Iterable[Layer], depth: int) -> Architecture:
    """A model without its layers, which are `depth` of some kinds: what stands before, between and behind them."""
    branches = [branch for fields in kinds for branch in fields.branches]
    positions = next((table for b in branches if (table := _positions(b.position, header))), None)
    embedding = header.embedding.build(header.vocab_size, header.hidden_size, header.norm, positions, depth)
    return Architecture(
        name=header.name,
        family=header.family,
        source=header.source,
        vocab_size=header.vocab_size,
        hidden_size=header.hidden_size,
        context=header.context,
        trained_context=header.trained_context or _stretched_from(layers),
        dtype=header.dtype,
        embedding=embedding,
        layers=(),
        final_norm=_final_norm(header),
        head=header.logits.build(embedding, header.embedding.tied, header.norm, _ends(header)),
        streams=header.streams.build(header.hidden_size) if header.streams else None,
        passes=header.passes.build(header.hidden_size) if header.passes else None,
        undeclared=header.undeclared,
        claims=tuple(Claim(key, c.value, c.source, c.within) for key, c in header.published.items()),
    )


def _positions(position: PositionFields | None, header: Header) -> Positions | None:
    """What is added to the embedding, if anything is."""
    match position:
        case LearnedFields(offset=offset):
            return Positions(header.context, offset, learned=True)
        case SinusoidalFields(offset=offset, layout=layout, slowest=slowest):
            return Positions(header.context, offset, learned=False, layout=layout, slowest=slowest)
        case AxialFields(rows=rows, columns=columns, row_width=width):
            return Positions(rows * columns, 0, True, ((rows, width), (columns, header.hidden_size - width)))
        case _:
            return None


def _stretched_from(layers: Iterable[Layer]) -> int | None:
    """The shortest length that a scaling of positions says it starts from."""
    stated = (mixer.rope.original_context for layer in layers for mixer in layer.mixers() if mixer.rope)
    return min((length for length in stated if length is not None), default=None)


def _ends(header: Header) -> int:
    """Streams that stand side by side before the head."""
    return header.streams.ends if header.streams else 1


def _final_norm(header: Header) -> Norm | None:
    if not header.final_norm:
        return None
    norm = header.norm.build(header.hidden_size * _ends(header))
    eps, bias = header.final_norm_eps, header.final_norm_bias
    return replace(norm, eps=norm.eps if eps is None else eps, bias=norm.bias if bias is None else bias)
