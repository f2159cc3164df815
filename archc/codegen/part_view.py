"""What the view of any part answers: the templates print it, the header of the module speaks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Self, TypeVar

from archc.codegen.caching import KEYS_AND_VALUES, Kept, Sizes
from archc.codegen.constants import Constant
from archc.codegen.naming import LINE, Names, Variant
from archc.codegen.norms import Norms
from archc.codegen.rotation import Turn
from archc.codegen.routing import RouterView
from archc.parts.base import FfnPart, MixerPart, Part

P = TypeVar("P", bound=Part)
M = TypeVar("M", bound=MixerPart)
F = TypeVar("F", bound=FfnPart)


@dataclass(frozen=True, slots=True)
class PartView(ABC, Generic[P]):
    """One class of the generated module, printed by `template`, with the names of its constants."""

    name: str
    names: Names
    part: P

    letters: ClassVar[str] = ""
    """What the suffixes of its tensors mean, beside those that all modules use."""

    @property
    def template(self) -> str:
        """The partial that prints it."""
        assert self.part.partial is not None  # E210
        return self.part.partial

    @property
    @abstractmethod
    def summary(self) -> str:
        """The class's docstring."""

    @property
    @abstractmethod
    def sizes(self) -> Iterator[Constant]:
        """Its constants."""

    @property
    def soft_caps(self) -> bool:
        """Whether it calls `soft_cap`."""
        return False

    @property
    def choice(self) -> RouterView | None:
        """The router that decides what a token passes through, and tells the load-balancing loss."""
        return None

    @property
    def routed(self) -> bool:
        """Whether it has one."""
        return self.choice is not None

    @property
    def needs_math(self) -> bool:
        """Whether it calls `math`."""
        return False


@dataclass(frozen=True, slots=True)
class MixerView(PartView[M], Generic[M]):
    """A class that lets positions meet."""

    kept: ClassVar[Kept] = KEYS_AND_VALUES
    """The two tensors that it keeps for every position."""
    rotate: str | None
    """The function that turns its heads."""
    optional: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Those of its inputs that not all of its layers have."""
    unmasked: bool = field(default=False, kw_only=True)
    """Whether it is given no mask where queries see all that came before them."""

    @classmethod
    @abstractmethod
    def of(cls, part: M, names: Names, norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of a mixer, with the names of the norms and rotations that it calls."""

    @staticmethod
    @abstractmethod
    def words(part: M) -> str:
        """What the header says of it, beside its positions and windows."""

    @staticmethod
    @abstractmethod
    def without_arguments(part: M) -> M:
        """The mixer without what its class is given from outside, so that layers that differ in that share a class."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of what it is given beside the stream and the cache (`inputs.Input`)."""

    @property
    def reads_mask(self) -> bool:
        """Whether it does more with its mask than hand it to torch's attention."""
        return False

    @property
    def mask(self) -> str:
        """The parameter that says which keys are visible."""
        return f"visible_BTS: Tensor{' | None' if self.unmasked else ''}"

    @property
    def masked(self) -> tuple[str, ...]:
        """What torch's attention is given for it."""
        return ("visible_BTS", *(["is_causal=causal"] if self.unmasked else []))

    @property
    def asks_kind(self) -> bool:
        """Whether its class asks for the kind of a layer."""
        return False

    @property
    def turning(self) -> Iterator[str]:
        """The statements that turn queries and keys, in a method."""
        if self.rotate is None:
            return
        indent, only = (12, "    ") if "rotation" in self.optional else (8, "")
        if only:
            yield "if rotation is not None:  # else a layer without positions"
        q, k = (f"{self.rotate}({name}, *rotation)" for name in ("q_BHTC", "k_BKTC"))
        together = f"q_BHTC, k_BKTC = {q}, {k}"
        statements = [together] if indent + len(together) <= LINE else [f"q_BHTC = {q}", f"k_BKTC = {k}"]
        yield from (f"{only}{statement}" for statement in statements)
        if self.normed_where_turned:
            yield f"{only}q_BHTC, k_BKTC = self.q_norm(q_BHTC), self.k_norm(k_BKTC)"

    @property
    def normed_where_turned(self) -> bool:
        """Whether queries and keys are normed behind that, and not in layers where they do not turn."""
        return False

    @property
    def rope_channels(self) -> str:
        """The constant that says over how many channels positions act."""
        return self.names.HEAD_DIM

    @property
    @abstractmethod
    def cached(self) -> tuple[Sizes, Sizes]:
        """Heads and channels of what it keeps, as names of constants."""


@dataclass(frozen=True, slots=True)
class FfnView(PartView[F], Generic[F]):
    """A class that works on each position alone."""

    @classmethod
    @abstractmethod
    def of(cls, part: F, names: Names, norms: Norms) -> Self:
        """The view of a feed-forward, with the names of the norms that it calls."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the call that makes it is given."""
        return ()

    @staticmethod
    @abstractmethod
    def words(part: F) -> str:
        """What the header says of it."""
