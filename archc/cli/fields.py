"""What a field of the language means, found by its path: `norm.eps`, `position.scaling.factor`, `layers.pattern`.

The answers are read off the schema, so that they are those that specs are checked by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from archc.cli.json_schema import Schema, complete_language

_LARGE = 2**40
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a section",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one field is. Where sections come in kinds, a path can have several meanings."""

    when: tuple[str, ...]
    """The kinds that have the field so, such as ("mlp", "gated"); empty when there is only one kind."""
    description: str
    type: str
    choices: tuple[object, ...]
    required: bool
    default: object
    fields: tuple[tuple[str, str], ...]
    """Fields of a section, each with what it is for."""

    def as_json(self) -> dict[str, object]:
        """The meaning for machines; `default` is null where there is none, or where null is it."""
        return {
            "when": list(self.when),
            "description": self.description,
            "type": self.type,
            "choices": list(self.choices),
            "required": self.required,
            "default": self.default,
            "fields": [{"name": name, "description": description} for name, description in self.fields],
        }


@dataclass(frozen=True, slots=True)
class Section:
    """What one kind of a section can state, for pages that show all of it."""

    kind: str
    """Empty where the section has no kinds."""
    description: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a section, and the sections that its value can be: none where it is a plain value."""

    name: str
    meaning: Meaning
    sections: tuple[Section, ...]


def language_sections() -> tuple[Field, ...]:
    """The whole language as a tree, from the keys of a spec down; a branch of `block` leads no further."""
    language = _language()
    (header,) = _sections(language, language["$defs"], ())
    return header.fields


def meanings(path: str) -> list[Meaning]:
    """Every meaning of a path; none when the language has no such field."""
    language = _language()
    found: list[Meaning] = []
    for place in _walk(_Place(language, (), True), path.split("."), language["$defs"]):
        meaning = _meaning(place, language["$defs"])
        for index, other in enumerate(found):
            if (other.description, other.type, other.default) == (meaning.description, meaning.type, meaning.default):
                found[index] = _joined(other, meaning)
                break
        else:
            found.append(meaning)
    return found


def near_paths(word: str) -> list[str]:
    """Up to three paths that may have been meant: those that end in the word, then those that look like it."""
    paths = known_paths()
    ending = [path for path in paths if path.endswith(f".{word}")]
    last = {path.rpartition(".")[2]: path for path in reversed(paths)}
    similar = get_close_matches(word, paths, 3, 0.6)
    similar += [last[name] for name in get_close_matches(word, last, 2, 0.75)]
    return list(dict.fromkeys(ending + similar))[:3]


def known_paths() -> list[str]:
    """Every path that has a meaning, those inside a named kind of layer left out."""
    language = _language()
    return list(dict.fromkeys(_paths(language, "", language["$defs"])))


@cache
def _language() -> Schema:
    return complete_language()


@dataclass(frozen=True, slots=True)
class _Place:
    node: Schema
    when: tuple[str, ...]
    required: bool


def _walk(place: _Place, steps: Sequence[str], definitions: Schema) -> Iterator[_Place]:
    """The places that the steps lead to."""
    if not steps:
        yield place
        return
    alternatives = list(_alternatives(place.node, definitions))
    for kind, node in alternatives:
        when = (kind,) if kind and len(alternatives) > 1 else place.when
        properties = node.get("properties", {})
        if steps[0] in properties:
            required = steps[0] in node.get("required", ())
            field = properties[steps[0]]
            if "const" in field:  # a kind is what its section is
                field = {"description": node.get("description", ""), **field}
            yield from _walk(_Place(field, when, required), steps[1:], definitions)
        for value, longest in _values(node, len(steps)):
            for length in range(1, longest + 1):
                inside = list(_walk(_Place(value, when, False), steps[length:], definitions))
                if inside:
                    yield from inside
                    break


def _alternatives(node: Schema, definitions: Schema) -> Iterator[tuple[str, Schema]]:
    """The sections that a value can be, each with its kind; a section without a kind has an empty one."""
    if "$ref" in node:
        yield from _alternatives(_resolved(node, definitions), definitions)
    elif "anyOf" in node or "oneOf" in node:
        for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
            yield from _alternatives(option, definitions)
    elif node.get("type") == "array":
        yield from _alternatives(node["items"], definitions)
    elif node.get("type", "object") == "object":
        kind = node.get("properties", {}).get("kind", {}).get("const", "")
        yield kind, node


def _values(node: Schema, steps: int) -> Iterator[tuple[Schema, int]]:
    """The schemas of a mapping's values, where its keys are the author's own, and how many steps a key can take.

    A key of `published` is itself a dotted path; one that has to keep to a pattern has no dots.
    """
    if isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"], steps
    for value in node.get("patternProperties", {}).values():
        yield value, 1


def _resolved(node: Schema, definitions: Schema) -> Schema:
    found: Schema = definitions[node["$ref"].rpartition("/")[2]]
    return found


def _meaning(place: _Place, definitions: Schema) -> Meaning:
    node = place.node
    sections = list(_alternatives(node, definitions))
    fields: dict[str, str] = {}
    if len(sections) > 1:
        fields["kind"] = f"One of {', '.join(kind for kind, _ in sections)}; each has fields of its own."
    for _, section in sections:
        for name, field in section.get("properties", {}).items():
            fields.setdefault(name, _description(field, definitions))
    types = list(dict.fromkeys(_type(node, definitions)))
    choices = list(_choices(node, definitions))
    return Meaning(
        when=place.when,
        description=_description(node, definitions),
        type=" or ".join(types),
        choices=tuple(choices),
        required=place.required,
        default=node.get("default"),
        fields=tuple(fields.items()),
    )


def _sections(node: Schema, definitions: Schema, inside: tuple[str, ...]) -> tuple[Section, ...]:
    """The sections that a value can be; those that hold others of their own kind end there."""
    found = []
    for kind, section in _alternatives(node, definitions):
        fields = []
        for name, field in section.get("properties", {}).items():
            required = name in section.get("required", ())
            within = () if name in inside or "block" in inside else _sections(field, definitions, (*inside, name))
            fields.append(Field(name, _meaning(_Place(field, (), required), definitions), within))
        if fields:
            found.append(Section(kind, _description(section, definitions), tuple(fields)))
    return tuple(found)


def _joined(one: Meaning, other: Meaning) -> Meaning:
    return Meaning(
        tuple(dict.fromkeys(one.when + other.when)),
        one.description,
        one.type,
        one.choices,
        one.required and other.required,
        one.default,
        one.fields,
    )


def _description(node: Schema, definitions: Schema) -> str:
    if "description" in node:
        return str(node["description"])
    if "$ref" in node:
        return _description(_resolved(node, definitions), definitions)
    options = (_description(option, definitions) for option in node.get("anyOf", ()))
    return next((description for description in options if description), "")


def _type(node: Schema, definitions: Schema) -> Iterator[str]:
    if "$ref" in node:
        yield from _type(_resolved(node, definitions), definitions)
    elif "anyOf" in node or "oneOf" in node:
        for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
            yield from _type(option, definitions)
    elif "enum" in node or "const" in node:
        yield "one of the choices"
    else:
        bounds = [
            f"{word} {_figure(node[key])}" for key, word in _BOUNDS.items() if abs(node.get(key, _LARGE)) < _LARGE
        ]
        yield " ".join([_TYPES[node.get("type", "object")], *([", ".join(bounds)] if bounds else [])])


def _figure(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _choices(node: Schema, definitions: Schema) -> Iterator[object]:
    if "$ref" in node:
        yield from _choices(_resolved(node, definitions), definitions)
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _choices(option, definitions)
    if node.get("type") == "array":
        yield from _choices(node["items"], definitions)
    yield from node.get("enum", ())
    if "const" in node:
        yield node["const"]


def _paths(node: Schema, inside: str, definitions: Schema) -> Iterator[str]:
    for _, section in _alternatives(node, definitions):
        for name, field in section.get("properties", {}).items():
            path = f"{inside}.{name}" if inside else name
            yield path
            yield from _paths(field, path, definitions)
