"""What a fault is: a named mistake, the ways in which a given model can have it, and how a port with it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from archc.architecture.model import Architecture

Layers: TypeAlias = frozenset[int] | None
"""The layers that a mistake is limited to; None: wherever it can be."""
Weights: TypeAlias = Mapping[str, Any]
"""Tensors by their names in the generated module."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the generated source: what matches `pattern` becomes `becomes` (as in re.sub), wherever it stands."""

    pattern: str
    becomes: str
    if_there: bool = False
    """Whether a source that nothing matches is right as it is."""

    def apply(self, source: str) -> str | None:
        """The source with the change; None where there is nothing to change."""
        changed, count = re.subn(self.pattern, self.becomes, source, flags=re.MULTILINE)
        return changed if count or self.if_there else None


@dataclass(frozen=True, slots=True)
class Faulty:
    """What a port with mistakes is made of: a spec, changes of its code, and changes of the weights it was given."""

    architecture: Architecture
    edits: tuple[Edit, ...] = ()
    weights: tuple[Callable[[Weights], Weights], ...] = ()


@dataclass(frozen=True, slots=True)
class Slip:
    """One way in which a given model can have a fault.

    `change` plants it, in some layers alone if asked to; `layers` are those that it can be in, none where it belongs
    to no layer in particular. `declared` and `behaves_as` are values of the fault's field, in the language's words.
    """

    declared: str
    behaves_as: str
    change: Callable[[Faulty, Layers], Faulty]
    layers: tuple[int, ...] = ()


IN_32_BITS = "the model runs in 32 bits"
"""When mistakes of types are none."""
Kind: TypeAlias = Literal["architecture", "layout", "runtime"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake of ports, by the field of the language that it gets wrong.

    Of the three kinds, an architecture fault is a changed spec, a layout fault reads the right tensors in a wrong way,
    and a runtime fault is one of caches, padding, positions and types. `slips` finds the ways in which a model can have
    it; none where it does not apply.
    """

    id: str
    field: str
    kind: Kind
    wrong: str
    """What ports get wrong, in a sentence."""
    when: str
    """To which models it applies."""
    mend: str
    """Where to look, and what to change."""
    slips: Callable[[Architecture], Iterable[Slip]]
    seen: tuple[str, ...] = ()
    """Public reports of it, as repository#number."""
    loud: bool = False
    """Whether it shows when weights are loaded: names or shapes do not fit."""
    probes: tuple[str, ...] = ()
    """Names of the probes that show it, where few do; they are tried first."""
    same_when: str = ""
    """When it is no fault at all: what makes the two ways equal."""
