"""What the view of any part answers: the templates print it, the header of the module speaks of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from archc.codegen.caching import KEYS_AND_VALUES, Kept, Sizes
from archc.codegen.constants import Constant
from archc.codegen.naming import Variant
from archc.codegen.norms import Norms
from archc.codegen.rotation import Turn
from archc.codegen.routing import RouterView
from archc.parts.base import FfnPart, MixerPart, Part

P = TypeVar("P", bound=Part)
M = TypeVar("M", bound=MixerPart)
F = TypeVar("F", bound=FfnPart)


@dataclass(frozen=True, slots=True)
class PartView(Generic[P]):
    """One class of the generated module, printed by `template`; `constants` is the prefix of its constants."""

    name: str
    constants: str
    part: P

    letters: ClassVar[str] = ""
    """What the suffixes of its tensors mean, beside those that all modules use."""

    @property
    def template(self) -> str:
        """The partial that prints it."""
        assert self.part.partial is not None  # E210
        return self.part.partial

    @property
    def summary(self) -> str:
        """The class's docstring."""
        raise NotImplementedError

    @property
    def sizes(self) -> Iterator[Constant]:
        """Its constants."""
        raise NotImplementedError

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

    @classmethod
    def of(cls, variant: Variant[M], norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of a mixer, with the names of the norms and rotations that it calls."""
        raise NotImplementedError

    @staticmethod
    def words(part: M) -> str:
        """What the header says of it, beside its positions and windows."""
        raise NotImplementedError

    @staticmethod
    def without_arguments(part: M) -> M:
        """The mixer without what its class is given from outside, so that layers that differ in that share a class."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what it is given beside the stream and the cache (`inputs.Input`)."""
        raise NotImplementedError

    @property
    def rope_channels(self) -> str:
        """The constant that says over how many channels positions act."""
        return f"{self.constants}HEAD_DIM"

    @property
    def cached(self) -> tuple[Sizes, Sizes]:
        """Heads and channels of what it keeps, as names of constants."""
        raise NotImplementedError

    @staticmethod
    def cached_sizes(part: M) -> tuple[tuple[int, int], tuple[int, int]]:
        """The same in numbers."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FfnView(PartView[F], Generic[F]):
    """A class that works on each position alone."""

    @classmethod
    def of(cls, variant: Variant[F], norms: Norms) -> Self:
        """The view of a feed-forward, with the names of the norms that it calls."""
        raise NotImplementedError

    @staticmethod
    def words(part: F) -> str:
        """What the header says of it."""
        raise NotImplementedError
