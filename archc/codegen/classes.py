"""Which layers of a generated module share the class of their mixer, and which a form of block."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from archc.architecture.model import Layer
from archc.codegen.inputs import bare
from archc.codegen.parts import MIXERS
from archc.parts.attention import Attention
from archc.parts.base import MixerPart


def without_arguments(layer: Layer, printed: MixerPart | None) -> Layer:
    """A layer without its kind and what its class is given from outside: layers equal in the rest share a class.

    `printed` stands in the place of its mixer.
    """
    branches = []
    for branch in layer.branches:
        parts = ((slot, printed if printed and part is layer.mixer else part) for slot, part in branch.parts)
        branches.append(replace(branch, parts=tuple(parts)))
    return replace(layer, kind="", branches=tuple(branches))


def printed_mixers(mixing: Mapping[str, MixerPart]) -> dict[str, MixerPart]:
    """What the class is printed from of each kind's mixer, without what it is given from outside.

    Layers whose heads do not turn, or whose queries do not grow, share a class with those that differ in nothing else.
    """
    found: dict[str, MixerPart] = {kind: MIXERS[type(part)].without_arguments(part) for kind, part in mixing.items()}
    alike: dict[MixerPart, list[str]] = {}
    for kind, part in found.items():
        if isinstance(part, Attention):
            alike.setdefault(bare(part), []).append(kind)
    for plain, kinds in alike.items():
        parts = dict.fromkeys(part for kind in kinds if isinstance(part := found[kind], Attention))
        turning = dict.fromkeys((part.rope, part.q_norm, part.k_norm) for part in parts if part.rope)
        growths = dict.fromkeys(part.query_scale for part in parts if part.query_scale)
        if len(turning) > 1:
            continue
        fullest = next((part for part in parts if part.rope), plain)
        assert isinstance(fullest, Attention)
        shared = replace(fullest, query_scale=next(iter(growths), None))
        found |= dict.fromkeys(kinds, shared)
    return found
