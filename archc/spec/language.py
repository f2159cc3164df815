"""The spec language, version 1: what a person may write, section by section.

A spec has a header, sections that describe a layer (norm, position, attention, mixer, ffn, residual, block), and
`layers`, which says how many layers there are and how they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

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
Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]*$")]
LayerCount = Annotated[int, Field(gt=0, le=MAX_LAYERS)]
KindName = Annotated[str, Field(max_length=40, pattern=r"^[a-z][a-z0-9_]*$")]
Reads = Literal["stream", "stream_and_embedding", "last_input", "streams", "unmixed"]
FamilyName = Annotated[str, Field(max_length=40, pattern=r"^[a-z][a-z0-9_-]*$")]


class ClaimFields(Fields):
    """A published figure that the spec must reproduce."""

    value: float = Field(description="The published figure, in the report's unit.")
    source: Annotated[str, Field(min_length=1, max_length=300)] = Field(description="Where it is published.")
    within: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="Relative tolerance, for figures that were published rounded."
    )


class KindFields(Fields):
    """`layers.kinds.NAME`: what one kind of layer states differently from the sections of the spec."""

    norm: dict[str, Any] | None = Field(default=None, description="Fields of norm that differ.")
    position: dict[str, Any] | None = Field(default=None, description="Fields of position that differ; null: none.")
    attention: dict[str, Any] | None = Field(default=None, description="Fields of attention that differ; null: none.")
    mixer: dict[str, Any] | None = Field(default=None, description="Fields of mixer that differ; null: none.")
    ffn: dict[str, Any] | None = Field(default=None, description="Fields of ffn that differ; null: none.")
    residual: dict[str, Any] | None = Field(default=None, description="Fields of residual that differ.")
    block: list[dict[str, Any]] | None = Field(default=None, description="The branches, in full.")


class LayersFields(Fields):
    """`layers:` of a model whose layers differ."""

    count: LayerCount = Field(description="Number of layers.")
    kinds: Annotated[dict[KindName, KindFields | None], Field(min_length=1, max_length=100)] = Field(
        description="Named kinds of layer; each states only what differs."
    )
    pattern: Annotated[str, Field(min_length=1, max_length=2000)] = Field(
        description="The kind of every layer in order, such as 3*(5*local, global), naming each layer exactly once. "
        "a+b combines two kinds, the later one winning."
    )


class Header(Fields):
    """Everything in a spec that does not belong to one kind of layer."""

    archc: Literal[1] = Field(description="Version of the language.")
    name: Label = Field(description="The model's name.")
    family: FamilyName | None = Field(
        default=None, description="How Hugging Face stores it (its model_type); absent for a design of one's own."
    )
    source: Label | None = Field(default=None, description="Where the figures come from, such as a hub id.")
    vocab_size: Size = Field(description="Rows of the embedding as stored, padding rows included.")
    hidden_size: Annotated[int, Field(gt=0, le=2**20)] = Field(description="Width of the residual stream.")
    context: Size = Field(description="Positions that the model is meant for.")
    trained_context: Size | None = Field(
        default=None,
        description="Positions of the longest texts of training; original_context of a scaling, or context, unless "
        "stated.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field(description="Type the weights are published in.")
    embedding: EmbeddingFields = Field(description="The token embedding.")
    norm: NormFields = Field(description="The norms of every layer, and the final norm.")
    final_norm: bool = Field(default=True, description="Whether a norm, as in norm, stands before the head.")
    final_norm_eps: Positive | None = Field(default=None, description="As norm.eps, which is the default.")
    final_norm_bias: bool | None = Field(default=None, description="As norm.bias, which is the default.")
    logits: LogitsFields = Field(default_factory=LogitsFields, description="The output head.")
    streams: Annotated[StreamFields, Field(discriminator="kind")] | None = Field(
        default=None, description="Several residual streams, where there is more than one."
    )
    passes: Annotated[PassesFields, Field(discriminator="kind")] | None = Field(
        default=None, description="What happens between the passes through layers that run several times."
    )
    layers: LayerCount | LayersFields = Field(
        description="The number of layers, or count, kinds and pattern where layers differ."
    )
    undeclared: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(strict=False)] = Field(
        default=(),
        description="What the reference does and this language has no field for, in words. Sizes hold; such a model is "
        "neither generated nor validated.",
    )
    published: dict[str, ClaimFields] = Field(
        default={}, description="Published figures by report key, such as params.total; `archc check` compares them."
    )


class BranchHead(Fields):
    """What an entry of `block` states beside its parts and their norm."""

    shared: KindName | None = Field(
        default=None, description="A name under which all layers share this branch's parameters: they are counted once."
    )
    reads: Reads = Field(
        default="stream",
        description="What the branch reads, behind its norm: the stream; stream and embedded tokens side by side; "
        "what the branch before it has read, behind the norm of that one; or all streams of streams side by side, to "
        "each of which it then adds its share of the output; or unmixed, the stream (or what the last branch has put "
        "in its place) without the mixture that streams would make.",
    )


SECTIONS: Final = ("norm", "position", "attention", "mixer", "ffn", "residual", "block")
"""The sections that describe a layer, and may differ between kinds of layer."""
ITEM: Final = ("norm", "position", "attention", "mixer", "ffn", "residual", *BranchHead.model_fields)
"""What an entry of `block` may state."""


@dataclass(frozen=True, slots=True)
class BranchFields:
    """One branch of a layer: its parts by section (attention, mixer, ffn), all reading the same normed input."""

    parts: Mapping[str, PartFields]
    norm: NormFields | None
    position: PositionFields | None
    residual: ResidualFields
    shared: str | None
    reads: Reads


@dataclass(frozen=True, slots=True)
class LayerFields:
    """One kind of layer, after its differences have been merged in."""

    branches: tuple[BranchFields, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec that is well formed: a header, its kinds of layer, and the kind of every layer."""

    header: Header
    kinds: dict[str, LayerFields]
    pattern: tuple[str, ...]
