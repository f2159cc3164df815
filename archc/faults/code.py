"""Slips in code: the right spec and the right weights, and a statement that does something else with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from archc.architecture.model import Architecture
from archc.faults.base import Edit, Faulty, Layers, Slip
from archc.faults.facts import Fits, anything
from archc.faults.sites import Slips


@dataclass(frozen=True, slots=True)
class Way:
    """One wrong way to write something: its word, what makes the generated source so, and where it is wrong."""

    behaves_as: str
    edits: tuple[Edit, ...]
    fits: Fits = anything


def way(behaves_as: str, *changes: tuple[str, str], fits: Fits = anything) -> Way:
    """A way that is made by these changes of the source, each a pattern and what it becomes."""
    return Way(behaves_as, tuple(Edit(pattern, becomes) for pattern, becomes in changes), fits)


_ALWAYS = Edit(r"^( +hides = ).*$", r"\1True", if_there=True)
"""Masks are made where none is needed, too."""


def mask_way(behaves_as: str, *changes: tuple[str, str]) -> Way:
    """A way whose changes are those of a mask, which queries then see nothing without."""
    changed = way(behaves_as, *changes)
    return replace(changed, edits=(*changed.edits, _ALWAYS))


def code_slips(declared: str | Callable[[Architecture], object], *ways: Way, fits: Fits = anything) -> Slips:
    """The slips of a statement that models have which `fits`; they belong to no layer in particular."""

    def find(architecture: Architecture) -> Iterator[Slip]:
        if fits(architecture):
            right = declared if isinstance(declared, str) else str(declared(architecture))
            for one in ways:
                if one.fits(architecture):
                    yield Slip(right, one.behaves_as, _edited(one.edits))

    return find


def _edited(edits: tuple[Edit, ...]) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        del layers
        return replace(faulty, edits=(*faulty.edits, *edits))

    return change
