"""The language reference: a page for every section of a spec and for every kind of it, from what checks specs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from docutils.nodes import make_id

from archc.cli.fields import Field, Meaning, Section, language_sections
from archc.cli.known_faults import catalogue, faults_of
from archc.spec.language import SECTIONS
from docs._site import faults
from docs._site.markdown import code, plain, table
from docs._site.shipped import is_own_kind, most_telling, uses

_FOLDER = "reference/language"
_MODEL = "model"
_SHOWN = 60
"""Characters of a value that are worth showing."""


def pages() -> Iterator[tuple[str, list[str]]]:
    """The index, the page of the keys that are no sections, and those of the sections and their kinds."""
    yield "language/index", list(_index())
    yield f"language/{_MODEL}", list(_model())
    for field in _sections():
        if len(field.sections) == 1:
            yield f"language/{field.name}", list(_kind_page(field, field.sections[0]))
            continue
        yield f"language/{field.name}", list(_kinds(field))
        for section in field.sections:
            yield f"language/{field.name}-{section.kind}", list(_kind_page(field, section))


@cache
def places() -> dict[str, tuple[str, str]]:
    """The page and the anchor of every field, by its path; of those that several kinds have, in the first of them."""
    found: dict[str, tuple[str, str]] = {}
    for field in _sections():
        for section in field.sections:
            page = f"{_FOLDER}/{_page_name(field, section)}"
            for path, label, _ in _walk(section, (field.name,), _label(field, section)):
                found.setdefault(".".join(path), (page, make_id(label)))
    return found


def link(path: str, folder: str) -> str:
    """A link to a field, from a page in a folder beside `language/`; code alone for what has no anchor."""
    name = places().get(path)
    if name is None:
        page = path if any(field.name == path for field in _sections()) else _MODEL
        return f"[{code(path)}](../language/{page}.md)"
    return f"[{code(path)}](../{name[0].removeprefix('reference/')}.md#{name[1]})"


def _sections() -> list[Field]:
    return [field for field in language_sections() if field.sections]


def _page_name(field: Field, section: Section) -> str:
    return field.name if len(field.sections) == 1 else f"{field.name}-{section.kind}"


def _label(field: Field, section: Section) -> str:
    return ".".join(filter(None, ("field", field.name, section.kind)))


def _index() -> Iterator[str]:
    yield from ("# The language, field by field", "")
    yield "Made of the very declarations that specs are checked by. [The guide](../../language.md) says how they fit"
    yield "together, `archc explain FIELD` prints one, `archc schema` gives an editor all of them."
    yield ""
    rows = [(f"[the model]({_MODEL}.md)", "Names, sizes, types; what is published.")]
    for field in _sections():
        kinds = ", ".join(
            f"[{code(one.kind)}]({_page_name(field, one)}.md)" for one in field.sections if len(field.sections) > 1
        )
        rows.append(
            (
                f"[{code(field.name)}]({field.name}.md)",
                plain(field.meaning.description) + (f" {kinds}" if kinds else ""),
            )
        )
    yield from table(("section", "says"), rows)
    yield from ("```{toctree}", ":hidden:", "", _MODEL, *(field.name for field in _sections()), "```")


def _model() -> Iterator[str]:
    yield from ("# The model itself", "", "What stands at the top of a spec and is no section.", "")
    for field in language_sections():
        if not field.sections:
            yield from _field(field, field.name, f"field.{field.name}", 2)


def _kinds(field: Field) -> Iterator[str]:
    yield from (f"# {field.name}", "", plain(field.meaning.description), "")
    rows = [
        (f"[{code(one.kind)}]({_page_name(field, one)}.md)", plain(_first(one.description)), _count(field, one))
        for one in field.sections
    ]
    yield from table(("kind", "is", "shipped specs"), rows)
    yield from ("```{toctree}", ":hidden:", "", *(_page_name(field, one) for one in field.sections), "```")


def _first(description: str) -> str:
    """What a kind is, in short: what stands behind the line that shows how it is written."""
    said = re.sub(r"^`[^`]*`[:.]\s*", "", description.strip())
    return " ".join(said.partition("\n\n")[0].split())


def _count(field: Field, section: Section) -> str:
    return str(len({name for name, _ in uses(_label(field, section))}) or "none")


def _kind_page(field: Field, section: Section) -> Iterator[str]:
    label = _label(field, section)
    yield from (f"# {field.name}{f': {section.kind}' if section.kind else ''}", "")
    said = section.description if not section.description.endswith("of a spec.") else field.meaning.description
    for paragraph in said.split("\n\n"):
        yield from (plain(" ".join(paragraph.split())), "")
    if example := most_telling(label):
        name, value = example
        shown = yaml.safe_dump(
            {field.name: value}, default_flow_style=None, sort_keys=False, width=100, allow_unicode=True
        )
        yield from (f"As in {code(name)}:", "", "```yaml", *shown.rstrip("\n").split("\n"), "```", "")
    yield from _fields(section, (field.name,), label)


def _fields(section: Section, path: tuple[str, ...], label: str) -> Iterator[str]:
    for field in section.fields:
        inner, here = (*path, field.name), f"{label}.{field.name}"
        if is_own_kind(field):
            continue
        yield from _field(field, ".".join(inner), here, min(len(inner), 3))
        if field.name in SECTIONS:
            yield from (f"Its fields are those of [{code(field.name)}]({field.name}.md).", "")
            continue
        for one in field.sections:
            if one.kind:
                yield from (
                    f"### {plain('.'.join(inner[1:]))}: {plain(one.kind)}",
                    "",
                    plain(_first(one.description)),
                    "",
                )
            yield from _fields(one, inner, f"{here}.{one.kind}" if one.kind else here)


def _field(field: Field, path: str, label: str, level: int) -> Iterator[str]:
    """A heading, what may stand there, what it does, where it is used, and what ports get wrong about it."""
    meaning = field.meaning
    yield from (f"({label})=", f"{'#' * level} {plain(path.partition('.')[2] or path)}", "")
    yield from (
        f"*{plain(meaning.type)}; {plain(_need(meaning))}*",
        "",
        plain(" ".join(meaning.description.split())),
        "",
    )
    if len(meaning.choices) > 1:
        yield from (f"Choices: {', '.join(code(_yaml(choice)) for choice in meaning.choices)}.", "")
    stated = [(name, _yaml(value)) for name, value in uses(label)]
    if stated:
        name, value = min(stated, key=lambda use: (len(use[1]) > _SHOWN, stated.index(use)))
        more = f", and {len({one for one, _ in stated}) - 1} more" if len({one for one, _ in stated}) > 1 else ""
        yield from (f"Stated by {code(name)}{f' as {code(value)}' if len(value) <= _SHOWN else ''}{more}.", "")
    wrong = [*([path] if path in catalogue() else []), *faults_of(path)]
    if wrong:
        yield from (f"What ports get wrong: {', '.join(faults.link(fault, 'language') for fault in wrong)}.", "")


def _need(meaning: Meaning) -> str:
    if meaning.required:
        return "required"
    return "optional" if meaning.default is None else f"{_yaml(meaning.default)} unless stated"


def _yaml(value: Any) -> str:
    """A value as a spec would have it, in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _walk(section: Section, path: tuple[str, ...], label: str) -> Iterator[tuple[tuple[str, ...], str, Field]]:
    """Every field of a section and of those inside it, with its path and its label."""
    for field in section.fields:
        inner, here = (*path, field.name), f"{label}.{field.name}"
        if is_own_kind(field):
            continue
        yield inner, here, field
        if field.name not in SECTIONS:
            for one in field.sections:
                yield from _walk(one, inner, f"{here}.{one.kind}" if one.kind else here)
