"""Both ends of a generated module: how tokens become the residual stream, and what scores the next token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.codegen.constants import Constant
from archc.codegen.glu import ACTIVATIONS
from archc.codegen.naming import LINE, fitted, literal
from archc.codegen.norms import NormCall, Norms
from archc.parts.ends import Embedding, Head

_METHOD = 8
"""Columns that the body of a method is indented by."""


@dataclass(frozen=True, slots=True)
class EmbeddingView:
    """What stands between token ids and the first layer."""

    part: Embedding
    norm: NormCall | None

    @property
    def channels(self) -> str:
        """The constant that says how wide the table is."""
        return "EMBEDDING_WIDTH" if self.part.narrow else "WIDTH"

    @property
    def stream(self) -> str:
        """The tokens as channels of the stream."""
        rows = "self.embedding(input_ids)"
        found = f"self.embedding_projection({rows})" if self.part.narrow else rows
        exact = self.part.scale is not None and not self.part.scale_rounded
        return f"{found} * EMBEDDING_SCALE" if exact else found

    @property
    def rows(self) -> str:
        """How many rows a learned table of positions has."""
        return "POSITION_OFFSET + CONTEXT" if self._offset else "CONTEXT"

    @property
    def position(self) -> str:
        """The number of a position, as the table or the sinusoids count."""
        return "position_ids + POSITION_OFFSET" if self._offset else "position_ids"

    @property
    def sinusoidal(self) -> bool:
        """Whether sines and cosines of positions are added."""
        return self.part.table is not None and not self.part.table.learned

    @property
    def _offset(self) -> int:
        return self.part.table.offset if self.part.table else 0


@dataclass(frozen=True, slots=True)
class HeadView:
    """What stands between the last layer and the logits."""

    part: Head
    transform_norm: NormCall | None

    @property
    def channels(self) -> str:
        """The constant that says how wide the matrix is."""
        return "EMBEDDING_WIDTH" if self.part.narrow else "WIDTH"

    @property
    def tokens(self) -> str:
        """The constant that says how many tokens are scored."""
        return "SCORED_TOKENS" if self.part.unscored else "VOCAB_SIZE"

    @property
    def plain(self) -> bool:
        """Whether the matrix does all there is to do."""
        return list(self.statements) == ["return self.head(x_BTD)"] and self.part.transform is None

    @property
    def function(self) -> str:
        """What makes logits of the stream."""
        return "self.head" if self.plain else "self.logits"

    @property
    def summary(self) -> str:
        """The docstring of the method."""
        if self.part.given is not None or self.part.unscored:
            return "Scores of the first tokens of the vocabulary, [B, T, V]."
        return "Scores of every token of the vocabulary, [B, T, V]."

    @property
    def transformed(self) -> str:
        """The statement by which the layer before the head changes the stream."""
        assert self.part.transform is not None
        activated = ACTIVATIONS[self.part.transform.activation].format("self.head_transform(x_BTD)")
        return fitted(_METHOD, "x_BTD = self.head_transform_norm", [activated])

    @property
    def statements(self) -> Iterator[str]:
        """The statements that make logits of x_BTD and return them."""
        function, arguments = self._product
        steps = list(self._steps)
        if len(steps) == 1:
            product = f"{function}({', '.join(arguments)})"
            at_once = f"return {steps[0].replace('logits_BTV', product)}"
            if _METHOD + len(at_once) <= LINE:
                yield at_once
                return
        yield fitted(_METHOD, f"{'logits_BTV =' if steps else 'return'} {function}", arguments)
        yield from (f"logits_BTV = {step}" for step in steps[:-1])
        yield from (f"return {step}" for step in steps[-1:])

    @property
    def _product(self) -> tuple[str, list[str]]:
        """The function that scores tokens, and what it is given."""
        stream = "x_BTD * HEAD_INPUT_SCALE" if self.part.scaled == "input" else "x_BTD"
        if self.part.narrow:
            stream = f"self.head_projection({stream})"
        if not self.part.tied:
            return "self.head", [stream]
        rows = "self.embedding.weight" + ("[:SCORED_TOKENS]" if self.part.unscored else "")
        return "linear", [stream, rows, *(['self.head["bias"]'] if self.part.bias else [])]

    @property
    def _steps(self) -> Iterator[str]:
        """What becomes of the product, step by step."""
        part = self.part
        if part.float32:
            yield "logits_BTV.float()"
        if part.learned_scale is not None:
            yield f"logits_BTV * (self.head_scale{'.float()' if part.float32 else ''} * LEARNED_LOGIT_SCALE)"
        if part.scale is not None and part.scaled == "logits":
            yield "logits_BTV * LOGIT_SCALE"
        if part.softcap is not None:
            yield "soft_cap(logits_BTV, LOGIT_SOFTCAP)"
        if part.given is not None:
            yield "logits_BTV[..., :GIVEN_TOKENS]"


def embedding_view(part: Embedding, norms: Norms) -> EmbeddingView:
    """The view of an embedding, with the names of the norms that it calls."""
    return EmbeddingView(part, norms.call(part.norm, "WIDTH") if part.norm else None)


def head_view(part: Head, norms: Norms) -> HeadView:
    """The view of a head, with the names of the norms that it calls."""
    return HeadView(part, norms.call(part.transform_norm, "WIDTH") if part.transform_norm else None)


def end_constants(architecture: Architecture) -> Iterator[Constant]:
    """Sizes and scales of both ends, where they are not those of the model."""
    embedding, head = architecture.embedding, architecture.head
    if embedding.narrow:
        yield Constant("EMBEDDING_WIDTH", literal(embedding.width), "channels of the embedding and of the head")
    if embedding.scale is not None:
        root = embedding.scale == architecture.hidden_size**0.5
        yield Constant("EMBEDDING_SCALE", "WIDTH**0.5" if root else literal(embedding.scale))
    if embedding.table and embedding.table.offset:
        what = "rows before that of the first position" if embedding.table.learned else "number of the first position"
        yield Constant("POSITION_OFFSET", literal(embedding.table.offset), what)
    if embedding.segments:
        yield Constant("SEGMENTS", literal(embedding.segments), "such as languages")
    if head.unscored:
        yield Constant("SCORED_TOKENS", literal(head.vocab_size), "tokens that have logits, the first ones")
    if head.learned_scale is not None:
        yield Constant("LEARNED_LOGIT_SCALE", literal(head.learned_scale), "times a learned number per token")
    if head.scale is not None:
        yield Constant("LOGIT_SCALE" if head.scaled == "logits" else "HEAD_INPUT_SCALE", literal(head.scale))
    if head.softcap is not None:
        yield Constant("LOGIT_SOFTCAP", literal(head.softcap))
    if head.given is not None:
        yield Constant("GIVEN_TOKENS", literal(head.given), "tokens whose logits are given, the first ones")


def table_words(part: Embedding) -> str:
    """What the header says of positions that are added to the embedding; empty where none are."""
    if part.table is None:
        return ""
    if part.table.learned:
        first = f", behind {part.table.offset} that none uses" if part.table.offset else ""
        return f"a learned row for each of {part.table.count:,} positions{first}, and no position beyond"
    first = f", of which the first is number {part.table.offset}" if part.table.offset else ""
    order = "all sines, then all cosines" if part.table.layout == "blocks" else "a cosine beside its sine"
    return f"sines and cosines of positions are added to the embedding{first}: {order}"


def end_words(architecture: Architecture) -> Iterator[str]:
    """What the header says of both ends, beside whether they share a matrix."""
    yield from _embedding_words(architecture.embedding)
    yield from _head_words(architecture.head)


def _embedding_words(part: Embedding) -> Iterator[str]:
    if part.narrow:
        yield f"tokens are embedded in {part.width:,} channels; matrices lead from there to the stream, and back"
    if part.scale is not None:
        rounded = "" if part.scale_rounded else ", which is not rounded to the type of the weights"
        yield f"embedded tokens are multiplied by {part.scale:g}{rounded}"
    if part.segments:
        yield f"a row for each of {part.segments:,} segments, added where it is said which a token is in"
    if part.norm:
        yield "a norm stands between the embedding and the first layer"
    if part.affine:
        yield "embedded tokens are shifted, then scaled, by learned numbers per channel"


def _head_words(part: Head) -> Iterator[str]:
    if part.transform:
        yield f"before the head stand a linear layer, {part.transform.activation} and a norm"
    if part.bias:
        yield "the head has a bias"
    if part.unscored:
        yield f"the head scores the first {part.vocab_size:,} tokens: the others stand in the input alone"
    if part.float32:
        yield "logits are given in 32 bits, whatever the type of the weights"
    if part.learned_scale is not None:
        yield f"logits are multiplied by {part.learned_scale:g} times a learned number for every token"
    if part.scale is not None:
        what = "logits are" if part.scaled == "logits" else "what the head reads is"
        yield f"{what} multiplied by {part.scale:g}"
    if part.softcap is not None:
        yield f"logits are capped at {part.softcap:g}"
    if part.given is not None:
        yield f"logits are given for the first {part.given:,} tokens"
    if part.idle_bias:
        yield "the checkpoint holds one more bias of the head, which nothing uses"
