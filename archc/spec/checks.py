"""Impossible and unlikely combinations, section by section.

Every check works on whatever is well formed, so that a file with a typo in one section still hears
about an impossible combination in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from archc.families import known_families
from archc.parts.base import Fields, Finding, Surroundings
from archc.parts.ends import LogitsFields
from archc.parts.position import AxialFields, LearnedFields, RopeFields, SinusoidalFields

ADDED: Final = (LearnedFields, AxialFields, SinusoidalFields)
"""Positions that are added to the embedding."""
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
    added = [(kind, position) for kind, position in positions if isinstance(position, ADDED)]
    for index, (kind, position) in enumerate(positions):
        other = next((name for name, table in added if table != position), None)
        if other is not None and isinstance(position, (*ADDED, RopeFields)):
            does = "rotates" if isinstance(position, RopeFields) else "adds others"
            yield (
                index,
                Finding(
                    "E207",
                    ("position", "kind"),
                    f"the kind {other} adds positions to the embedding, the kind {kind} {does}",
                    "what is added to the embedding reaches all layers: use one or the other",
                ),
            )
            return


def check_ends(header: Mapping[str, object]) -> Iterator[Finding]:
    """What does not hold between the two ends of a model; `header` has what is well formed."""
    logits, vocab_size = header.get("logits"), header.get("vocab_size")
    if isinstance(logits, LogitsFields) and isinstance(vocab_size, int):
        yield from logits.check_tokens(vocab_size)


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
