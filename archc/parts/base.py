"""What all parts share: fields of the language, tensors, caches, findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:  # their fields are made of this file
    from archc.parts.norm import NormFields
    from archc.parts.position import PositionFields

Size = Annotated[int, Field(gt=0, le=2**40)]
Positive = Annotated[float, Field(gt=0, lt=1e38)]
Role = Literal["mixer", "ffn"]
Group = Literal["embedding", "head", "attention", "ffn", "router", "norm", "position", "other"]


class Fields(BaseModel):
    """A section of a spec. Unknown keys and silent conversions are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """What does not hold among these fields and what is known of their surroundings."""
        del around
        yield from ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What surrounds the fields of a part, as far as it is known; what is not (well formed) is None."""

    hidden_size: int | None = None
    context: int | None = None
    position: Fields | None = None
    head_dim: int | None = None
    """Channels of a head, for what a mixer applies to its heads."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What surrounds the fields of a part in a spec without errors: enough to build it."""

    hidden_size: int
    context: int
    norm: NormFields
    position: PositionFields | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that does not hold. `path` leads to the offending field from the part's section."""

    code: str
    path: tuple[str, ...]
    message: str
    mend: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter: its name inside the owner, its shape, and what it counts as.

    `slices_used` is the number of leading slices (experts) that one token's forward pass reads;
    None means the whole tensor.
    """

    name: str
    shape: tuple[int, ...]
    group: Group
    slices_used: int | None = None

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
        return Tensor(f"{owner}.{self.name}", self.shape, self.group, self.slices_used)


@dataclass(frozen=True, slots=True)
class FullCache:
    """Keeps `elements` numbers for every position (after vLLM's FullAttentionSpec)."""

    elements: int
    window: ClassVar[None] = None

    def positions(self, context: int) -> int:
        """Positions that the layer must remember after `context` tokens."""
        return context

    def reference_positions(self, context: int) -> int:
        """Positions that transformers' own cache object holds after `context` tokens."""
        return context

    def mean_keys(self, context: int) -> float:
        """Keys that a token meets, averaged over a sequence of `context` tokens.

        The n-th token meets n keys, itself included: (1 + … + C) / C = (C + 1) / 2.
        """
        return (context + 1) / 2


@dataclass(frozen=True, slots=True)
class SlidingCache:
    """Keeps `elements` numbers for the last `window` positions (after vLLM's SlidingWindowSpec)."""

    elements: int
    window: int

    def positions(self, context: int) -> int:
        """Positions that the layer must remember after `context` tokens: the window, current token included."""
        return min(context, self.window)

    def reference_positions(self, context: int) -> int:
        """Transformers keeps window - 1 rows: the token being computed is not stored beforehand
        (transformers 5.24, cache_utils.py, DynamicSlidingWindowLayer.update)."""
        return min(context, self.window - 1)

    def mean_keys(self, context: int) -> float:
        """Keys that a token meets, averaged over a sequence of `context` tokens.

        The n-th token meets min(n, W): the first W tokens meet W(W + 1) / 2 in all, the other C - W meet W each.
        """
        full = min(self.window, context)
        return (full * (full + 1) / 2 + (context - full) * full) / context


Cache = FullCache | SlidingCache


class Part(Protocol):
    """A mixer or a feed-forward: one file in `archc/parts/`, one partial in `templates/`."""

    @property
    def role(self) -> Role:
        """Whether positions meet in the part (mixer), or it works on each of them alone (ffn)."""

    @property
    def slot(self) -> str:
        """The attribute that holds the part inside a block: `attention` or `ffn`."""

    @property
    def partial(self) -> str:
        """The template partial that prints the part."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Every parameter, named as in the generated module."""

    def cache(self) -> Cache | None:
        """What the part remembers from token to token."""

    def linear_flops(self) -> int:
        """Floating-point operations per token in matrix products with weights (a multiply-add is two)."""

    def mixing_flops(self, keys: float) -> float:
        """Floating-point operations of one query that meets `keys` positions."""


def linear(name: str, out_features: int, in_features: int, bias: bool, group: Group) -> tuple[Tensor, ...]:
    """The tensors of a torch Linear: weight [out, in] and, if it has one, bias [out]."""
    weight = Tensor(f"{name}.weight", (out_features, in_features), group)
    return (weight, Tensor(f"{name}.bias", (out_features,), group)) if bias else (weight,)
