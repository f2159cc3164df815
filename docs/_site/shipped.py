"""Which of the shipped specs state a field, and as what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from archc import resources
from archc.cli.fields import Field, Section, language_sections
from archc.parts.kinds import DEFAULT_KIND
from archc.spec.load import shipped_names

_LONGEST = 400
"""Characters of an example beyond which a shorter one tells more."""


def is_own_kind(field: Field) -> bool:
    """Whether this is the `kind` that tells a section from its alternatives."""
    return field.name == "kind" and len(field.meaning.choices) == 1


def uses(label: str) -> list[tuple[str, Any]]:
    """The specs that state what has this label, each with its value; one in several kinds of layer occurs as often."""
    return _all_uses().get(label, [])


def most_telling(label: str) -> tuple[str, Any] | None:
    """The spec whose section says most, of those that fit on a page."""
    found = uses(label)
    fitting = [use for use in found if len(str(use[1])) <= _LONGEST] or found[:1]
    return max(fitting, key=lambda use: len(str(use[1])), default=None)


@cache
def _all_uses() -> Mapping[str, list[tuple[str, Any]]]:
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    folder = resources.folder("specs")
    for name in shipped_names():
        spec = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
        for stated in _contexts(spec):
            for field in language_sections():
                if field.name in stated:
                    for label, value in _labels(field, stated[field.name], spec.get(field.name), "field"):
                        found[label].append((name, value))
    return found


def _contexts(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The mappings that state sections: the spec, its kinds of layer, and the branches of either."""
    layers = spec["layers"]
    kinds = layers["kinds"].values() if isinstance(layers, dict) else ()
    for stated in (spec, *filter(None, kinds)):
        yield stated
        yield from stated.get("block") or ()


def _labels(field: Field, value: Any, inherited: Any, label: str) -> Iterator[tuple[str, Any]]:
    here = f"{label}.{field.name}"
    section = _section(field, value, inherited) if isinstance(value, dict) else None
    if section is None or not section.kind:
        yield here, value
    if section is None:
        return
    if section.kind:
        here = f"{here}.{section.kind}"
        yield here, value
    for inner in section.fields:
        if inner.name in value and not is_own_kind(inner):
            outer = inherited.get(inner.name) if isinstance(inherited, dict) else None
            yield from _labels(inner, value[inner.name], outer, here)


def _section(field: Field, value: Mapping[str, Any], inherited: Any) -> Section | None:
    """Of the sections that a value can be, the one whose kind it states, or inherits."""
    base = inherited if isinstance(inherited, dict) else {}
    kind = value.get("kind") or base.get("kind") or DEFAULT_KIND.get(field.name, "")
    matching = [section for section in field.sections if section.kind in ("", kind)]
    return matching[0] if matching else None
