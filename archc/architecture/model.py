"""The Architecture: what the compiler works on. Nothing in it is left to a default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from archc.parts.base import Tensor
from archc.parts.ends import Embedding, Head
from archc.parts.kinds import Ffn, Mixer
from archc.parts.norm import Norm


@dataclass(frozen=True, slots=True)
class Branch:
    """One part on the residual stream, with its own norms before and after it."""

    part: Mixer | Ffn
    pre_norm: Norm | None
    post_norm: Norm | None

    def tensors(self) -> Iterator[Tensor]:
        """The part's tensors under its slot, and the norms beside it."""
        slot = self.part.slot
        if self.pre_norm:
            yield from self.pre_norm.tensors(f"{slot}_norm")
        for tensor in self.part.tensors():
            yield tensor.inside(slot)
        if self.post_norm:
            yield from self.post_norm.tensors(f"{slot}_post_norm")


@dataclass(frozen=True, slots=True)
class Layer:
    """Branches in sequence, or in parallel behind one shared norm."""

    kind: str
    branches: tuple[Branch, ...]
    shared_norm: Norm | None
    stream_scale: float
    branch_scale: float

    @property
    def parallel(self) -> bool:
        """Whether all branches read the same normed input and are added together."""
        return self.shared_norm is not None

    @property
    def mixer(self) -> Mixer:
        """The part that lets positions meet."""
        return next(b.part for b in self.branches if b.part.role == "mixer")

    @property
    def ffn(self) -> Ffn:
        """The part that works on each position alone."""
        return next(b.part for b in self.branches if b.part.role == "ffn")

    def tensors(self) -> Iterator[Tensor]:
        """Every parameter of the layer, named from inside it."""
        if self.shared_norm:
            yield from self.shared_norm.tensors("norm")
        for branch in self.branches:
            yield from branch.tensors()


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure under its report key."""

    key: str
    value: float
    source: str
    within: float


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder-only language model: embedding → layers → final norm → head."""

    name: str
    family: str | None
    source: str | None
    vocab_size: int
    hidden_size: int
    context: int
    dtype: Literal["float32", "bfloat16", "float16"]
    embedding: Embedding
    layers: tuple[Layer, ...]
    final_norm: Norm
    head: Head
    claims: tuple[Claim, ...]

    def tensors(self) -> Iterator[Tensor]:
        """Every parameter once, named as in the generated module."""
        yield from self.embedding.tensors()
        for index, layer in enumerate(self.layers):
            for tensor in layer.tensors():
                yield tensor.inside(f"layers.{index}")
        yield from self.final_norm.tensors("final_norm")
        yield from self.head.tensors()
