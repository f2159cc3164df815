"""What faults ask of an Architecture: does it have such a thing, and which?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from archc.architecture.model import Architecture
from archc.faults import sites
from archc.faults.sites import Site
from archc.parts.attention import Attention
from archc.parts.base import Part
from archc.parts.norm import Norm
from archc.parts.position import Rope
from archc.parts.router import RouterFields

T = TypeVar("T")
P = TypeVar("P", bound=Part)
Fits: TypeAlias = Callable[[Architecture], bool]
"""Whether a model can have a mistake."""


def anything(architecture: Architecture) -> bool:
    """True of every model."""
    del architecture
    return True


def at(site: Site[T], architecture: Architecture) -> list[T]:
    """What stands at a site, of every layer that differs."""
    found: list[T] = []

    def keep(thing: T) -> T:
        found.append(thing)
        return thing

    for layer, _ in architecture.distinct:
        site(layer, keep)
    return found


def of_kind(kind: type[P], architecture: Architecture) -> list[P]:
    """The parts of one type, of every layer that differs."""
    return [part for layer, _ in architecture.distinct for part in layer.parts() if isinstance(part, kind)]


def ropes(architecture: Architecture) -> list[Rope]:
    """The rotary positions of its mixers."""
    return at(sites.ropes, architecture)


def routers(architecture: Architecture) -> list[RouterFields]:
    """What chooses experts, of feed-forwards and of attention."""
    return at(sites.routers, architecture)


def norms(architecture: Architecture) -> Iterator[Norm]:
    """The norms before, behind and in the parts, and the last one."""
    yield from at(sites.branch_norms, architecture)
    yield from at(sites.head_norms, architecture)
    if architecture.final_norm:
        yield architecture.final_norm


def windows(architecture: Architecture) -> list[int]:
    """The windows of its layers, once each."""
    mixers = (mixer for layer, _ in architecture.distinct for mixer in layer.mixers())
    return sorted({mixer.window for mixer in mixers if mixer.window})


def chunks(architecture: Architecture) -> list[int]:
    """The chunks that some of its layers see alone, once each."""
    return sorted({part.chunk for part in of_kind(Attention, architecture) if part.chunk})


def has_ropes(architecture: Architecture) -> bool:
    """Whether some mixer turns queries and keys."""
    return bool(ropes(architecture))


def counts_positions(architecture: Architecture) -> bool:
    """Whether the number of a position matters, and not distances alone: a table, or queries that grow."""
    scales = [part.query_scale for part in of_kind(Attention, architecture)]
    return architecture.embedding.table is not None or any(
        scale is not None and scale.counts == "positions" for scale in scales
    )


def numbers_positions(architecture: Architecture) -> bool:
    """Whether anything is worked out from the numbers of positions."""
    return has_ropes(architecture) or counts_positions(architecture)


def explicit_scores(architecture: Architecture) -> bool:
    """Whether something is done to scores between their product and the softmax, beside the mask."""
    return any(
        part.softcap is not None or part.sinks != "none" or part.alibi is not None
        for part in of_kind(Attention, architecture)
    )
