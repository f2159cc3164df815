"""Impossible and unlikely combinations, section by section.

Every check works on whatever is well formed, so that a file with a typo in one section still hears
about an impossible combination in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from archc.families import known_families
from archc.parts.base import Fields, Finding, Surroundings
from archc.parts.position import LearnedFields, RopeFields

Sections = Mapping[str, Fields | None]
"""The sections of one branch that are well formed."""


def check_branch(
    sections: Sections, hidden_size: int | None, context: int | None, embedding: Fields | None
) -> Iterator[Finding]:
    """What does not hold within one branch; a size that is not known is None."""
    around = Surroundings(hidden_size, context, sections.get("position"), embedding=embedding)
    for section in sections.values():
        if section is not None:
            yield from section.check(around)


def check_kinds(branches: Sequence[tuple[str, Sections]]) -> Iterator[tuple[int, Finding]]:
    """What does not hold between branches, of one kind of layer or several, with the branch to point at."""
    positions = [(kind, sections.get("position")) for kind, sections in branches]
    learned = [kind for kind, position in positions if isinstance(position, LearnedFields)]
    rotary = [index for index, (_, position) in enumerate(positions) if isinstance(position, RopeFields)]
    if learned and rotary:
        yield (
            rotary[0],
            Finding(
                "E207",
                ("position", "kind"),
                f"the kind {learned[0]} learns its positions, the kind {branches[rotary[0]][0]} rotates",
                "a learned table is added to the embedding, for all layers: use one or the other",
            ),
        )


def check_family(family: object) -> Iterator[Finding]:
    """A family is one that archc has a file for."""
    if isinstance(family, str) and family not in known_families():
        from difflib import get_close_matches

        near = get_close_matches(family, known_families(), 1, 0.5)
        yield Finding(
            "E208",
            ("family",),
            f"archc does not know how {family!r} is stored",
            f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known_families())}, or no family at all",
        )
