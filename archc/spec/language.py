"""The spec language, version 1: what a person may write, section by section.

A spec has a header, sections that describe a layer (norm, position, attention, mixer, ffn, residual, block), and
`layers`, which says how many layers there are and how they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from archc.parts.altup import AltUpFields
from archc.parts.base import Fields, PartFields, Positive, Size
from archc.parts.depth_streams import DepthFields
from archc.parts.ends import EmbeddingFields, LogitsFields
from archc.parts.gated_streams import GatedStreamFields
from archc.parts.norm import NormFields
from archc.parts.passes import PassesFields
from archc.parts.position import PositionFields
from archc.parts.residual import ResidualFields
from archc.parts.reversible import ReversibleFields
from archc.parts.streams import HyperConnectionFields

StreamFields = HyperConnectionFields | AltUpFields | GatedStreamFields | DepthFields | ReversibleFields
MAX_LAYERS = 10_000
MAX_BRANCHES = 16
Label = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]*$")]
LayerCount = Annotated[int, Meta(gt=0, le=MAX_LAYERS)]
KindName = Annotated[str, Meta(max_length=40, pattern=r"^[a-z][a-z0-9_]*$")]
Reads = Literal["stream", "stream_and_embedding", "last_input", "streams", "unmixed"]
FamilyName = Annotated[str, Meta(max_length=40, pattern=r"^[a-z][a-z0-9_-]*$")]


class ClaimFields(Fields, frozen=True, kw_only=True):
    """A published figure that the spec must reproduce."""

    value: Annotated[float, Meta(description="The published figure, in the report's unit.")]
    source: Annotated[str, Meta(min_length=1, max_length=300, description="Where it is published.")]
    within: Annotated[
        float, Meta(ge=0, lt=1, description="Relative tolerance, for figures that were published rounded.")
    ] = 0.0


class KindFields(Fields, frozen=True, kw_only=True):
    """`layers.kinds.NAME`: what one kind of layer states differently from the sections of the spec."""

    norm: Annotated[dict[str, Any] | None, Meta(description="Fields of norm that differ.")] = None
    position: Annotated[dict[str, Any] | None, Meta(description="Fields of position that differ; null: none.")] = None
    attention: Annotated[dict[str, Any] | None, Meta(description="Fields of attention that differ; null: none.")] = None
    mixer: Annotated[dict[str, Any] | None, Meta(description="Fields of mixer that differ; null: none.")] = None
    ffn: Annotated[dict[str, Any] | None, Meta(description="Fields of ffn that differ; null: none.")] = None
    residual: Annotated[dict[str, Any] | None, Meta(description="Fields of residual that differ.")] = None
    block: Annotated[list[dict[str, Any]] | None, Meta(description="The branches, in full.")] = None


class LayersFields(Fields, frozen=True, kw_only=True):
    """`layers:` of a model whose layers differ."""

    count: Annotated[LayerCount, Meta(description="Number of layers.")]
    kinds: Annotated[
        dict[KindName, KindFields | None],
        Meta(min_length=1, max_length=100, description="Named kinds of layer; each states only what differs."),
    ]
    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2000,
            description="The kind of every layer in order, such as 3*(5*local, global), naming each layer exactly "
            "once. a+b combines two kinds, the later one winning.",
        ),
    ]


class Header(Fields, frozen=True, kw_only=True):
    """Everything in a spec that does not belong to one kind of layer."""

    archc: Annotated[Literal[1], Meta(description="Version of the language.")]
    name: Annotated[Label, Meta(description="The model's name.")]
    family: Annotated[
        FamilyName | None,
        Meta(description="How Hugging Face stores it (its model_type); absent for a design of one's own."),
    ] = None
    source: Annotated[Label | None, Meta(description="Where the figures come from, such as a hub id.")] = None
    vocab_size: Annotated[Size, Meta(description="Rows of the embedding as stored, padding rows included.")]
    hidden_size: Annotated[int, Meta(gt=0, le=2**20, description="Width of the residual stream.")]
    context: Annotated[Size, Meta(description="Positions that the model is meant for.")]
    trained_context: Annotated[
        Size | None,
        Meta(
            description="Positions of the longest texts of training; original_context of a scaling, or context, unless "
            "stated."
        ),
    ] = None
    dtype: Annotated[Literal["float32", "bfloat16", "float16"], Meta(description="Type the weights are published in.")]
    embedding: Annotated[EmbeddingFields, Meta(description="The token embedding.")]
    norm: Annotated[NormFields, Meta(description="The norms of every layer, and the final norm.")]
    final_norm: Annotated[bool, Meta(description="Whether a norm, as in norm, stands before the head.")] = True
    final_norm_eps: Annotated[Positive | None, Meta(description="As norm.eps, which is the default.")] = None
    final_norm_bias: Annotated[bool | None, Meta(description="As norm.bias, which is the default.")] = None
    logits: Annotated[LogitsFields, Meta(description="The output head.")] = field(default_factory=LogitsFields)
    streams: Annotated[
        StreamFields | None, Meta(description="Several residual streams, where there is more than one.")
    ] = None
    passes: Annotated[
        PassesFields | None, Meta(description="What happens between the passes through layers that run several times.")
    ] = None
    layers: Annotated[
        LayerCount | LayersFields,
        Meta(description="The number of layers, or count, kinds and pattern where layers differ."),
    ]
    undeclared: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...],
        Meta(
            description="What the reference does and this language has no field for, in words. Sizes hold; such a "
            "model is neither generated nor validated."
        ),
    ] = ()
    published: Annotated[
        dict[str, ClaimFields],
        Meta(description="Published figures by report key, such as params.total; `archc check` compares them."),
    ] = field(default_factory=dict)


class BranchHead(Fields, frozen=True, kw_only=True):
    """What an entry of `block` states beside its parts and their norm."""

    shared: Annotated[
        KindName | None,
        Meta(description="A name under which all layers share this branch's parameters: they are counted once."),
    ] = None
    reads: Annotated[
        Reads,
        Meta(
            description="What the branch reads, behind its norm: the stream; stream and embedded tokens side by side; "
            "what the branch before it has read, behind the norm of that one; or all streams of streams side by side, "
            "to each of which it then adds its share of the output; or unmixed, the stream (or what the last branch "
            "has put in its place) without the mixture that streams would make."
        ),
    ] = "stream"


SECTIONS: Final = ("norm", "position", "attention", "mixer", "ffn", "residual", "block")
"""The sections that describe a layer, and may differ between kinds of layer."""
ITEM: Final = ("norm", "position", "attention", "mixer", "ffn", "residual", *BranchHead.__struct_fields__)
"""What an entry of `block` may state."""


class BranchFields(Struct, frozen=True):
    """One branch of a layer: its parts by section (attention, mixer, ffn), all reading the same normed input."""

    parts: Mapping[str, PartFields]
    norm: NormFields | None
    position: PositionFields | None
    residual: ResidualFields
    shared: str | None
    reads: Reads


class LayerFields(Struct, frozen=True):
    """One kind of layer, after its differences have been merged in."""

    branches: tuple[BranchFields, ...]


class Spec(Struct, frozen=True):
    """A spec that is well formed: a header, its kinds of layer, and the kind of every layer."""

    header: Header
    kinds: dict[str, LayerFields]
    pattern: tuple[str, ...]
