"""What all parts share: fields of the language, tensors, caches, findings."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from archc.parts.caches import Cache, Exact

if TYPE_CHECKING:  # their fields are made of this file
    from archc.parts.ends import EmbeddingFields
    from archc.parts.norm import Norm, NormFields
    from archc.parts.position import PositionFields, Rope

Size = Annotated[int, Meta(gt=0, le=2**40)]
Positive = Annotated[float, Meta(gt=0, lt=1e38)]
Small = Annotated[float, Meta(ge=0, lt=1)]
Group = Literal["embedding", "head", "attention", "ffn", "router", "norm", "position", "other"]
"""What a tensor counts as: `attention` stands for all mixers."""


class Fields(Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a spec. Unknown keys and silent conversions are errors."""

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """What does not hold among these fields and what is known of their surroundings."""
        del around
        yield from ()


class Surroundings(Struct, frozen=True):
    """What surrounds the fields of a part, as far as it is known; what is not (well formed) is None."""

    hidden_size: int | None = None
    context: int | None = None
    position: Fields | None = None
    head_dim: int | None = None
    """Channels of a head, for what a mixer applies to its heads."""
    embedding: Fields | None = None


class Settled(Struct, frozen=True):
    """What surrounds the fields of a part in a spec without errors: enough to build it."""

    hidden_size: int
    context: int
    norm: NormFields
    """The norm of the branch, or of the model where the branch has none:
    what norms inside a part take their defaults from."""
    position: PositionFields | None
    layers: int
    embedding: EmbeddingFields
    input_size: int
    """Channels of what the branch reads: hidden_size, or more where streams or the embedding stand side by side."""


class Finding(Struct, frozen=True):
    """A check that does not hold. `path` leads to the offending field from the part's section."""

    code: str
    path: tuple[str, ...]
    message: str
    mend: str


class Tensor(Struct, frozen=True):
    """A parameter: its name inside the owner, its shape, and what it counts as.

    `slices_used` is the number of leading slices (experts) that one token's forward pass reads;
    None means the whole tensor. A buffer is stored beside the parameters and is none of them.
    """

    name: str
    shape: tuple[int, ...]
    group: Group
    slices_used: int | None = None
    buffer: bool = False
    per_layer: bool = False
    """Whether every layer has its own, even in a branch whose parameters are shared."""
    whole_model: bool = False
    """Whether all layers share it, even where their branches share nothing."""
    gain: Literal["plain", "one_plus"] | None = None
    """How it multiplies, where it is the weight of a norm."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def active_size(self) -> int:
        """Number of elements that one token uses."""
        if self.slices_used is None:
            return self.size
        return self.size // self.shape[0] * self.slices_used

    def inside(self, owner: str) -> Tensor:
        """The same tensor, named from outside its owner."""
        return replace(self, name=f"{owner}.{self.name}")


class Keys(Protocol):
    """How many keys a query meets: a question that every fold over arithmetic asks in its own way."""

    @property
    def decoding(self) -> bool:
        """Whether one query meets what is cached, so that work on earlier positions has been done before."""

    def __call__(self, window: int | None = None, chunk: int | None = None) -> Exact:
        """Keys within the last `window` positions, or since the current chunk of `chunk` positions began."""

    def entries(self, rate: int, most: int | None = None) -> Exact:
        """Whole stretches of `rate` positions up to the query's own, or `most` of them."""


class Heads(Struct, frozen=True):
    """How the queries of a mixer share keys and values."""

    heads: int
    kv_heads: int
    head_dim: int
    """Channels over which a query meets a key."""


class Routed(Struct, frozen=True):
    """The experts of a feed-forward, of which a token uses `top_k`."""

    experts: int
    top_k: int
    params_per_expert: int


class Part(Struct, frozen=True):
    """A mixer or a feed-forward: one file in `archc/parts/`, one partial in `templates/`."""

    @property
    def kind(self) -> str:
        """The language's name for it, such as gqa or moe."""
        raise NotImplementedError

    @property
    def partial(self) -> str | None:
        """The template partial that prints the part; None while it cannot be generated."""
        return None

    @property
    def conventions(self) -> tuple[str, ...]:
        """What its arithmetic counts and leaves out, where that is not plain; printed with the figures."""
        return ()

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values in this part cannot be generated yet, such as attention.sinks.

        None in a part without a partial: its kind stands for all of them.
        """
        return ()

    def tensors(self) -> tuple[Tensor, ...]:
        """Every parameter, named as in the generated module."""
        raise NotImplementedError

    def caches(self) -> tuple[Cache, ...]:
        """What the part remembers from token to token."""
        raise NotImplementedError

    def linear_flops(self) -> int:
        """Floating-point operations per token in matrix products with weights (a multiply-add is two)."""
        raise NotImplementedError

    def mixing_flops(self, keys: Keys) -> Exact:
        """Floating-point operations per query where positions meet."""
        raise NotImplementedError


class PartFields(Fields, frozen=True, kw_only=True):
    """A section that declares a part."""

    also_reads: ClassVar[tuple[str, ...]] = ()
    """What the part can read that is wider than the stream, in the words of a branch's `reads`."""

    @property
    def readings(self) -> int:
        """Inputs of the part that streams may mix in ways of their own."""
        return 1

    def build(self, around: Settled) -> Part:
        """The part that the fields declare; they have passed `check`."""
        raise NotImplementedError


class MixerPart(Part, frozen=True):
    """What lets positions meet. What is not overridden is so for a mixer without queries, keys and positions."""

    @property
    def shape(self) -> Heads | None:
        """How queries share keys and values; None for a mixer without queries."""
        return None

    @property
    def rope(self) -> Rope | None:
        """The rotary positions that it applies."""
        return None

    @property
    def head_norms(self) -> tuple[Norm, ...]:
        """The norms of its queries and keys."""
        return ()

    @property
    def position_kind(self) -> str | None:
        """How it tells positions apart by itself: rope, alibi or buckets; None where it does not."""
        return "rope" if self.rope else None

    @property
    def window(self) -> int | None:
        """Positions that a query sees at most, its own included; None where it sees all earlier ones."""
        return None

    @property
    def chunk(self) -> int | None:
        """Positions that share a chunk, of whose others a query sees none; None where there are no chunks."""
        return None

    @property
    def shows_beyond(self) -> tuple[tuple[str, int], ...]:
        """Fields that change nothing before so many tokens stand in the input and the cache."""
        found = (("attention.window", self.window), ("attention.chunk", self.chunk))
        return tuple((field, size) for field, size in found if size is not None)

    @property
    def bounded_logits(self) -> bool:
        """Whether query-key products stay within bounds, however long training makes the projections grow."""
        return False

    @property
    def idle_biases(self) -> tuple[str, ...]:
        """Projections whose bias changes no output."""
        return ()


class FfnPart(Part, frozen=True):
    """What works on each position alone. What is not overridden is so for one that only multiplies."""

    @property
    def width(self) -> int:
        """Channels between its matrices; of one expert, where it has several."""
        raise NotImplementedError

    @property
    def gated(self) -> bool:
        """Whether an activated half multiplies the other half."""
        return False

    @property
    def activation(self) -> str | None:
        """The language's name for its activation; None where it has none to choose."""
        return None

    @property
    def routed(self) -> Routed | None:
        """The experts that a router chooses from, where there are any."""
        return None

    def caches(self) -> tuple[Cache, ...]:
        """It remembers nothing."""
        return ()

    def mixing_flops(self, keys: Keys) -> Exact:
        """Positions do not meet here."""
        del keys
        return 0


def linear(name: str, out_features: int, in_features: int, bias: bool, group: Group) -> tuple[Tensor, ...]:
    """The tensors of a torch Linear: weight [out, in] and, if it has one, bias [out]."""
    weight = Tensor(f"{name}.weight", (out_features, in_features), group)
    return (weight, Tensor(f"{name}.bias", (out_features,), group)) if bias else (weight,)
