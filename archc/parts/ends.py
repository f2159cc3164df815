"""The two ends of a model: token embedding (with a learned position table, if any) and output head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from archc.parts.adaptive import AdaptiveFields
from archc.parts.base import Fields, Finding, Positive, Size, Tensor, linear
from archc.parts.elementary import root
from archc.parts.feed_forward import ACTIVATION_DOC, Activation
from archc.parts.norm import Norm, NormFields
from archc.parts.per_layer import PerLayer, PerLayerFields
from archc.parts.position import SinusoidEnd, SinusoidLayout

Scaled = Literal["logits", "input"]


class EmbeddingFields(Fields, frozen=True, kw_only=True):
    """`embedding:` of a spec."""

    tied: Annotated[bool, Meta(description="Whether the output head is the embedding matrix itself.")]
    scale: Annotated[
        Positive | Literal["sqrt(hidden_size)"] | None,
        Meta(description="Multiplies the embedded tokens; sqrt(hidden_size) may be written as such."),
    ] = None
    scale_rounded: Annotated[
        bool, Meta(description="Whether scale is rounded to the type of the weights before it multiplies.")
    ] = True
    norm: Annotated[bool, Meta(description="Whether embedded tokens pass through a norm, as in norm.")] = False
    width: Annotated[
        Size | None,
        Meta(
            description="Channels of the embedding (and of a tied head), where linear layers without bias lead from it "
            "to hidden_size and back."
        ),
    ] = None

    segments: Annotated[
        Size | None,
        Meta(description="Rows of a table of which one is added for a token's segment, such as its language."),
    ] = None
    affine: Annotated[
        bool, Meta(description="Whether embedded tokens get a learned shift, then a learned factor, per channel.")
    ] = False
    per_layer: Annotated[PerLayerFields | None, Meta(description="A vector of each token for every layer.")] = None

    def build(
        self, vocab_size: int, hidden_size: int, norm: NormFields, positions: Positions | None, layers: int
    ) -> Embedding:
        """The embedding that the fields declare; `norm` is the model's."""
        scale = root(hidden_size) if isinstance(self.scale, str) else self.scale
        return Embedding(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            width=self.width or hidden_size,
            scale=scale,
            scale_rounded=self.scale_rounded and scale is not None,
            norm=norm.build(hidden_size) if self.norm else None,
            table=positions,
            segments=self.segments or 0,
            affine=self.affine,
            per_layer=self.per_layer.build(hidden_size, layers, norm) if self.per_layer else None,
        )


class TransformFields(Fields, frozen=True, kw_only=True):
    """`logits.transform`: a linear layer of hidden_size, an activation and a norm, as in norm, before the head."""

    activation: Annotated[Activation, Meta(description=ACTIVATION_DOC)]
    bias: Annotated[bool, Meta(description="Whether the linear layer has a bias.")] = False


class LogitsFields(Fields, frozen=True, kw_only=True):
    """`logits:` of a spec."""

    scale: Annotated[Positive | None, Meta(description="Multiplies the logits.")] = None
    scaled: Annotated[
        Scaled, Meta(description="Where scale multiplies: the logits, or the input of the head, so that no bias is.")
    ] = "logits"
    softcap: Annotated[
        Positive | None, Meta(description="Logits become softcap·tanh(logits / softcap), after the scale.")
    ] = None
    bias: Annotated[bool, Meta(description="Whether the head has a bias.")] = False
    float32: Annotated[
        bool, Meta(description="Whether logits are 32-bit numbers from the head on, before they are scaled and capped.")
    ] = False
    learned_scale: Annotated[
        Positive | None, Meta(description="A learned number for every token, times this, multiplies its logit.")
    ] = None
    vocab_size: Annotated[
        Size | None,
        Meta(description="Tokens that the head scores, the first ones; all that are embedded unless stated."),
    ] = None
    given: Annotated[
        Size | None,
        Meta(description="Tokens whose logits are given, the first ones, where the head has rows for more."),
    ] = None
    idle_bias: Annotated[bool, Meta(description="Whether a further bias is stored that nothing uses.")] = False
    transform: Annotated[TransformFields | None, Meta(description="A layer between the final norm and the head.")] = (
        None
    )
    adaptive: Annotated[AdaptiveFields | None, Meta(description="Rare tokens are scored through narrower layers.")] = (
        None
    )

    def check_tokens(self, vocab_size: int) -> Iterator[Finding]:
        """The head scores tokens that are embedded, gives logits that it has, and clusters hold every token once."""
        scored = self.vocab_size or vocab_size
        if scored > vocab_size:
            yield _beyond("vocab_size", f"the head would score {scored} tokens", vocab_size, "are embedded")
        if self.given is not None and self.given > scored:
            yield _beyond("given", f"the logits of {self.given} tokens would be given", scored, "are scored")
        if self.adaptive and (parts := self.adaptive.frequent + sum(self.adaptive.clusters)) != scored:
            yield _beyond("adaptive", f"frequent tokens and clusters are {parts} tokens", scored, "are scored")

    def build(self, embedding: Embedding, tied: bool, norm: NormFields, ends: int) -> Head:
        """The head that the fields declare, behind `embedding`; `norm` is the model's.

        It reads `ends` streams side by side.
        """
        return Head(
            vocab_size=self.vocab_size or embedding.vocab_size,
            unscored=embedding.vocab_size - (self.vocab_size or embedding.vocab_size),
            hidden_size=ends * embedding.hidden_size,
            width=ends * embedding.width,
            tied=tied,
            bias=self.bias,
            scale=self.scale,
            scaled=self.scaled if self.scale is not None else "logits",
            softcap=self.softcap,
            transform=self.transform,
            transform_norm=norm.build(embedding.hidden_size) if self.transform else None,
            adaptive=self.adaptive,
            learned_scale=self.learned_scale,
            given=self.given,
            idle_bias=self.idle_bias,
            float32=self.float32,
        )


def _beyond(field: str, message: str, tokens: int, there: str) -> Finding:
    return Finding("E212", ("logits", field), f"{message}, and {tokens} {there}", f"bring it in line with {tokens}")


class Positions(Struct, frozen=True):
    """A row that is added for each of `count` positions, from row `offset` on."""

    count: int
    offset: int
    learned: bool
    """Whether the rows are parameters, and not sines and cosines."""
    axes: tuple[tuple[int, int], ...] = ()
    """Rows and channels of the tables whose rows stand side by side, where there are two."""
    layout: SinusoidLayout = "interleaved"
    slowest: SinusoidEnd = "open"


class Embedding(Struct, frozen=True):
    """Token table [vocab_size, width], led to hidden_size; a row per position is added, if any."""

    vocab_size: int
    hidden_size: int
    width: int
    scale: float | None
    scale_rounded: bool
    """Whether the scale is rounded to the type of the weights before it multiplies."""
    norm: Norm | None
    table: Positions | None
    segments: int
    affine: bool = False
    per_layer: PerLayer | None = None

    @property
    def narrow(self) -> bool:
        """Whether a matrix leads from the embedding to the stream."""
        return self.width != self.hidden_size

    @property
    def positions(self) -> int | None:
        """The number of positions, where they are learned."""
        return self.table.count if self.table and self.table.learned else None

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        found = {
            "embedding.per_layer": self.per_layer is not None,
            "position.kind: axial": self.table is not None and bool(self.table.axes),
        }
        own = tuple(name for name, unusual in found.items() if unusual)
        return own + (self.norm.ungenerated() if self.norm else ())

    def tensors(self) -> Iterator[Tensor]:
        """The token table, the position table, and what stands between them and the first layer."""
        yield Tensor("embedding.weight", (self.vocab_size, self.width), "embedding")
        if self.table and self.table.axes:
            for number, shape in enumerate(self.table.axes, 1):
                yield Tensor(f"position_embedding_{number}.weight", shape, "position")
        elif self.table and self.table.learned:
            rows = self.table.count + self.table.offset
            yield Tensor("position_embedding.weight", (rows, self.hidden_size), "position")
        if self.segments:
            yield Tensor("segment_embedding.weight", (self.segments, self.hidden_size), "embedding")
        if self.narrow:
            yield from linear("embedding_projection", self.hidden_size, self.width, False, "other")
        if self.norm:
            yield from self.norm.tensors("embedding_norm")
        for name in ("shift", "factor") if self.affine else ():
            yield Tensor(f"embedding_{name}", (self.hidden_size,), "other")
        if self.per_layer:
            yield from self.per_layer.tensors()

    def linear_flops(self) -> int:
        """The projection to hidden_size, if there is one, and those for layers; looking up is no product."""
        widened = 2 * self.width * self.hidden_size if self.narrow else 0
        return widened + (self.per_layer.linear_flops() if self.per_layer else 0)


class Head(Struct, frozen=True):
    """Projection to [vocab_size] logits; a tied head has no matrix of its own."""

    vocab_size: int
    unscored: int
    """Embedded tokens that have no score."""
    hidden_size: int
    width: int
    tied: bool
    bias: bool
    scale: float | None
    softcap: float | None
    transform: TransformFields | None
    transform_norm: Norm | None
    adaptive: AdaptiveFields | None
    learned_scale: float | None = None
    given: int | None = None
    idle_bias: bool = False
    float32: bool = False
    scaled: Scaled = "logits"

    @property
    def narrow(self) -> bool:
        """Whether a matrix leads from the stream to the head."""
        return self.width != self.hidden_size

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        own = () if self.adaptive is None else ("logits.adaptive",)
        return own + (self.transform_norm.ungenerated() if self.transform_norm else ())

    def tensors(self) -> Iterator[Tensor]:
        """What stands before it, the matrix, unless it is the embedding, and the bias."""
        if self.transform and self.transform_norm:
            yield from linear("head_transform", self.hidden_size, self.hidden_size, self.transform.bias, "other")
            yield from self.transform_norm.tensors("head_transform_norm")
        if self.adaptive:
            yield from self.adaptive.tensors(self.hidden_size, self.bias)
            return
        if self.narrow:
            yield from linear("head_projection", self.width, self.hidden_size, False, "other")
        if not self.tied:
            yield Tensor("head.weight", (self.vocab_size, self.width), "head")
        if self.learned_scale is not None:
            yield Tensor("head_scale", (self.vocab_size,), "other")
        if self.bias:
            yield Tensor("head.bias", (self.vocab_size,), "head")
        if self.idle_bias:
            yield Tensor("head_idle_bias", (self.vocab_size,), "other")

    def linear_flops(self) -> int:
        """The head multiplies whether or not it is tied."""
        before = self.width * self.hidden_size if self.narrow else 0
        before += self.hidden_size**2 if self.transform else 0
        if self.adaptive:
            return 2 * (before + self.adaptive.weights(self.hidden_size))
        return 2 * (before + self.vocab_size * self.width)
