"""Impossible and unlikely combinations, section by section.

Every check works on whatever is well formed, so that a file with a typo in one section still hears
about an impossible combination in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from archc.families import known_families
from archc.parts.base import Fields, Finding, Surroundings
from archc.parts.position import LearnedFields, RopeFields

Sections = Mapping[str, Fields | None]
"""The sections of one kind of layer that are well formed."""


def check_layer(sections: Sections, hidden_size: int | None, context: int | None) -> Iterator[Finding]:
    """What does not hold within one kind of layer; a size that is not known is None."""
    around = Surroundings(hidden_size, context, sections.get("position"))
    for section in sections.values():
        if section is not None:
            yield from section.check(around)


def check_kinds(kinds: Mapping[str, Sections]) -> Iterator[tuple[str, Finding]]:
    """What does not hold between kinds of layer, with the kind to point at."""
    positions = {kind: sections.get("position") for kind, sections in kinds.items()}
    learned = [kind for kind, position in positions.items() if isinstance(position, LearnedFields)]
    rotary = [kind for kind, position in positions.items() if isinstance(position, RopeFields)]
    if learned and rotary:
        yield (
            rotary[0],
            Finding(
                "E207",
                ("position", "kind"),
                f"the kind {learned[0]} learns its positions, the kind {rotary[0]} rotates",
                "a learned table is added to the embedding, for all layers: use one or the other",
            ),
        )


def check_family(family: object) -> Iterator[Finding]:
    """A family is one that archc has a file for."""
    if isinstance(family, str) and family not in known_families():
        near = get_close_matches(family, known_families(), 1, 0.5)
        yield Finding(
            "E208",
            ("family",),
            f"archc does not know how {family!r} is stored",
            f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known_families())}, or no family at all",
        )
