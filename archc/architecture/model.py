"""The Architecture: what the compiler works on. Nothing in it is left to a default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from archc.parts.base import FfnPart, MixerPart, Part, Tensor
from archc.parts.ends import Embedding, Head
from archc.parts.norm import Norm
from archc.parts.passes import Passes
from archc.parts.residual import Residual
from archc.parts.streams import Streams

SHARED = "shared."
"""What the names of tensors start with that several layers share."""
_WHOLE_MODEL = f"{SHARED}layers"


class Branch(Struct, frozen=True):
    """Parts that read the same input, whose outputs are added to the residual stream together."""

    parts: tuple[tuple[str, Part], ...]
    """Each under its slot: the name of its module in the layer. Usually one."""
    pre_norm: Norm | None
    post_norm: Norm | None
    residual: Residual
    shared: str | None
    """The name under which branches at several depths share one set of parameters."""
    reads_embedding: bool
    """Whether it reads the embedded tokens beside the stream."""
    reads_last_input: bool = False
    """Whether it reads what the branch before it has read, behind that one's norm."""
    streams: Streams | None = None
    """The residual streams whose mixture it reads, where there are several; None where it reads all side by side."""
    readings: int = 1
    """Inputs that its parts may read in ways of their own."""
    norm_on_sum: bool = False
    """Whether the norm behind the branch is one of the whole stream, after the branch has been added."""

    @property
    def slot(self) -> str:
        """The name of the first part, by which the branch's norms are named too."""
        return self.parts[0][0]

    def mixers(self) -> Iterator[tuple[str, MixerPart]]:
        """Those parts that let positions meet, each with its slot."""
        yield from ((slot, part) for slot, part in self.parts if isinstance(part, MixerPart))

    def tensors(self) -> Iterator[Tensor]:
        """The parts' tensors under their slots, and the norms and weights beside them."""
        if self.pre_norm:
            yield from self.pre_norm.tensors(f"{self.slot}_norm")
        for slot, part in self.parts:
            for tensor in part.tensors():
                yield tensor.inside(slot)
        if self.post_norm:
            yield from self.post_norm.tensors(f"{self.slot}_post_norm")
        for tensor in self.residual.tensors():
            yield tensor.inside(f"{self.slot}_residual")
        for tensor in self.streams.branch_tensors(self.readings) if self.streams else ():
            yield tensor.inside(f"{self.slot}_streams")


class Layer(Struct, frozen=True):
    """Branches in sequence, or side by side."""

    kind: str
    branches: tuple[Branch, ...]
    parallel: bool
    """Whether all branches read the layer's input and are added together."""
    shared_norm: Norm | None
    """The one norm before all branches, where they are parallel and share it."""
    streams: Streams | None = None
    """The residual streams between layers, where there are several."""

    def parts(self) -> Iterator[Part]:
        """Every part, in order."""
        for branch in self.branches:
            for _, part in branch.parts:
                yield part

    def mixers(self) -> Iterator[MixerPart]:
        """Every part that lets positions meet, in order; of one branch, attention before others."""
        for branch in self.branches:
            for _, mixer in branch.mixers():
                yield mixer

    @property
    def mixer(self) -> MixerPart | None:
        """The first part that lets positions meet, if any does."""
        return next(self.mixers(), None)

    @property
    def ffn(self) -> FfnPart | None:
        """The widest part that works on each position alone, if there is one; experts before others."""
        found = [part for part in self.parts() if isinstance(part, FfnPart)]
        return max(found, key=lambda part: (part.routed is not None, part.width), default=None)

    def linear_flops_around(self) -> int:
        """Floating-point operations per token in products with weights that no part owns."""
        norms = [self.shared_norm, *(norm for b in self.branches for norm in (b.pre_norm, b.post_norm))]
        between = self.streams.layer_flops() if self.streams else 0
        between += sum(branch.streams.branch_flops() for branch in self.branches if branch.streams)
        return between + sum(norm.linear_flops() for norm in norms if norm)

    def tensors(self, prefix: str) -> Iterator[Tensor]:
        """Every parameter of the layer, named from outside it; those of a shared branch under its own name."""
        if self.shared_norm:
            for tensor in self.shared_norm.tensors("norm"):
                yield tensor.inside(prefix)
        for tensor in self.streams.layer_tensors() if self.streams else ():
            yield tensor.inside(f"{prefix}.streams")
        for branch in self.branches:
            owner = f"{SHARED}{branch.shared}" if branch.shared else prefix
            for tensor in branch.tensors():
                place = prefix if tensor.per_layer else _WHOLE_MODEL if tensor.whole_model else owner
                yield tensor.inside(place)
        if self.branches[-1].residual.layer_scalar:
            yield Tensor(f"{prefix}.scalar", (1,), "other", buffer=True)


class Claim(Struct, frozen=True):
    """A published figure under its report key."""

    key: str
    value: float
    source: str
    within: float


class Architecture(Struct, frozen=True):
    """A decoder-only language model: embedding → layers → final norm → head."""

    name: str
    family: str | None
    source: str | None
    vocab_size: int
    hidden_size: int
    context: int
    trained_context: int | None
    """The longest texts of training: as stated, or as the scaling of some layer says; None where neither does."""
    dtype: Literal["float32", "bfloat16", "float16"]
    embedding: Embedding
    layers: tuple[Layer, ...]
    final_norm: Norm | None
    head: Head
    streams: Streams | None
    """The residual streams, where there are several."""
    passes: Passes | None
    """What stands between the passes through layers that run several times."""
    undeclared: tuple[str, ...]
    """What the reference does and the language cannot say."""
    claims: tuple[Claim, ...]

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.layers)

    def parts(self) -> Iterator[Part]:
        """Every part of every layer, in order; a shared one as often as it is used."""
        for layer in self.layers:
            yield from layer.parts()

    def linear_flops_around(self) -> int:
        """Floating-point operations per token in products with weights that no part owns: of norms and streams."""
        found = self.streams.model_flops() if self.streams else 0
        found += self.passes.linear_flops() if self.passes else 0
        return found + sum(count * layer.linear_flops_around() for layer, count in self.distinct)

    def tensors(self) -> Iterator[Tensor]:
        """Every parameter and stored buffer once, named as in the generated module."""
        yield from self.embedding.tensors()
        yield from self.layer_tensors()
        yield from self._tensors_behind_layers()

    def _tensors_behind_layers(self) -> Iterator[Tensor]:
        for tensor in self.streams.model_tensors() if self.streams else ():
            yield tensor.inside("streams")
        for tensor in self.passes.tensors() if self.passes else ():
            yield tensor.inside("passes")
        if self.final_norm:
            yield from self.final_norm.tensors("final_norm")
        yield from self.head.tensors()

    def counted(self) -> Iterator[tuple[Tensor, int]]:
        """As `tensors`, but those of equal layers once, each with how many there are: for folds that ask no names."""
        ends = (*self.embedding.tensors(), *self._tensors_behind_layers())
        yield from ((tensor, 1) for tensor in ends)
        yield from self.counted_in_layers()

    @property
    def distinct(self) -> list[tuple[Layer, int]]:
        """Every layer that differs from those before it, and how many there are of it."""
        counts = Counter(id(layer) for layer in self.layers)
        first = {id(layer): layer for layer in self.layers}
        return [(first[key], count) for key, count in counts.items()]

    def counted_in_layers(self) -> Iterator[tuple[Tensor, int]]:
        """As `counted`, of the layers alone; a tensor that several layers share counts once."""
        seen: set[str] = set()
        for layer, count in self.distinct:
            for tensor in layer.tensors("layers"):
                shared = tensor.name.startswith(SHARED)
                if not shared or tensor.name not in seen:
                    yield tensor, 1 if shared else count
                seen.add(tensor.name)

    def layer_tensors(self) -> Iterator[Tensor]:
        """Those of the layers, a shared one at its first use."""
        seen: set[str] = set()
        for index, layer in enumerate(self.layers):
            for tensor in layer.tensors(f"layers.{index}"):
                if tensor.name not in seen:
                    seen.add(tensor.name)
                    yield tensor
