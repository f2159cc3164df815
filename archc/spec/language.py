"""The spec language, version 1: what a person may write, section by section.

A spec has a header, five sections that describe a layer (norm, position, attention, ffn,
residual), and `layers`, which says how many layers there are and how they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from archc.parts.attention import AttentionFields
from archc.parts.base import Fields, Positive, Size
from archc.parts.ends import EmbeddingFields, LogitsFields
from archc.parts.kinds import FfnFields
from archc.parts.norm import NormFields
from archc.parts.position import PositionFields

MAX_LAYERS = 10_000
Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]*$")]
LayerCount = Annotated[int, Field(gt=0, le=MAX_LAYERS)]
KindName = Annotated[str, Field(max_length=40, pattern=r"^[a-z][a-z0-9_]*$")]


class ResidualFields(Fields):
    """`residual:` of a spec: x becomes stream·x + branch·f(x)."""

    stream: Positive = Field(default=1.0, description="Multiplies the residual stream at every branch.")
    branch: Positive = Field(default=1.0, description="Multiplies a branch's output before it is added.")


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
    attention: dict[str, Any] | None = Field(default=None, description="Fields of attention that differ.")
    ffn: dict[str, Any] | None = Field(default=None, description="Fields of ffn that differ.")
    residual: dict[str, Any] | None = Field(default=None, description="Fields of residual that differ.")


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
    family: KindName | None = Field(
        default=None, description="How Hugging Face stores it (its model_type); absent for a design of one's own."
    )
    source: Label | None = Field(default=None, description="Where the figures come from, such as a hub id.")
    vocab_size: Size = Field(description="Rows of the embedding as stored, padding rows included.")
    hidden_size: Annotated[int, Field(gt=0, le=2**20)] = Field(description="Width of the residual stream.")
    context: Size = Field(description="Positions that the model is meant for.")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(description="Type the weights are published in.")
    embedding: EmbeddingFields = Field(description="The token embedding.")
    norm: NormFields = Field(description="The norms of every layer, and the final norm.")
    logits: LogitsFields = Field(default=LogitsFields(), description="The output head.")
    layers: LayerCount | LayersFields = Field(
        description="The number of layers, or count, kinds and pattern where layers differ."
    )
    published: dict[str, ClaimFields] = Field(
        default={}, description="Published figures by report key, such as params.total; `archc check` compares them."
    )


class LayerFields(Fields):
    """The sections of one kind of layer, after its differences have been merged in."""

    norm: NormFields = Field(description="The norms of a layer.")
    position: PositionFields | None = Field(description="How a mixer sees positions; null is the same as kind: none.")
    attention: AttentionFields = Field(description="The mixer.")
    ffn: FfnFields = Field(description="The feed-forward.")
    residual: ResidualFields = Field(default=ResidualFields(), description="Multipliers of the residual sum.")


SECTIONS = tuple(LayerFields.model_fields)


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec that is well formed: a header, its kinds of layer, and the kind of every layer."""

    header: Header
    kinds: dict[str, LayerFields]
    pattern: tuple[str, ...]
