"""The spec language as JSON Schema 2020-12, from the models that also check specs.

pydantic describes the header and the sections of a layer; what is added here is how they fit together. A uniform
stack (`layers: 30`) needs every section in full. Where layers differ, the sections and the kinds of layer share the
work: nothing in them is required, and null removes what it names. That they complete each other is left to
`archc check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archc.spec.language import SECTIONS, Header, KindFields, LayerFields

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"
_NULL = {"type": "null"}


def complete_language() -> Schema:
    """The language with every section in full, below the header and inside kinds of layer alike."""
    header, layer = Header.model_json_schema(), LayerFields.model_json_schema()
    definitions = {**header["$defs"], **layer["$defs"]}
    definitions[KindFields.__name__]["properties"] = {name: layer["properties"][name] for name in SECTIONS}
    language: Schema = _cleaned(
        {
            "properties": {**header["properties"], **layer["properties"]},
            "required": [*header["required"], *(name for name in layer["required"] if name not in header["required"])],
            "$defs": definitions,
        }
    )
    return language


def language_schema() -> Schema:
    """The schema that `archc schema` prints."""
    language = complete_language()
    sections = {name: language["properties"][name] for name in SECTIONS}
    definitions = language["$defs"]
    for name in sorted(_reached(sections, definitions)):
        definitions[f"Partial{name}"] = _partial(definitions[name])
    kind = definitions[KindFields.__name__]
    kind["properties"] = {name: _nullable(_partial(section)) for name, section in sections.items()}
    always = [name for name in Header.model_fields if name in language["required"]]
    return {
        "$schema": DIALECT,
        "title": "archc spec, version 1",
        "description": (Header.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            **language["properties"],
            **{name: _partial(section) for name, section in sections.items() if name not in Header.model_fields},
        },
        "required": always,
        "additionalProperties": False,
        "if": {"properties": {"layers": {"type": "integer"}}},
        "then": {"required": [name for name in language["required"] if name not in always], "properties": sections},
        "$defs": definitions,
    }


def _cleaned(node: Any) -> Any:
    """Without what pydantic adds for other tools: titles made from names, and OpenAPI's discriminators."""
    if isinstance(node, list):
        return [_cleaned(item) for item in node]
    if not isinstance(node, dict):
        return node
    noise = {"title"} if isinstance(node.get("title"), str) else set()
    if "propertyName" in node.get("discriminator", {}):
        noise.add("discriminator")
    kept = {key: _cleaned(value) for key, value in node.items() if key not in noise}
    if "patternProperties" in node:  # pydantic leaves other names open
        kept["additionalProperties"] = False
    return kept


def _partial(node: Any) -> Any:
    """The same with nothing required: any field may be missing, or null to remove an inherited one."""
    if isinstance(node, list):
        return [_partial(item) for item in node]
    if not isinstance(node, dict):
        return node
    made: Schema = {}
    for key, value in node.items():
        if key == "$ref":
            made[key] = value.replace(_REF, f"{_REF}Partial")
        elif key == "properties":
            made[key] = {name: _nullable(_partial(field)) for name, field in value.items()}
        elif key == "oneOf":
            made["anyOf"] = _partial(value)  # without their kind, several alternatives may fit
        elif key != "required":
            made[key] = _partial(value)
    return made


def _nullable(field: Schema) -> Schema:
    if _NULL in field.get("anyOf", []):
        return field
    shown: Schema = {key: field[key] for key in ("description", "default") if key in field}
    return {"anyOf": [{key: value for key, value in field.items() if key not in shown}, _NULL], **shown}


def _reached(node: Any, definitions: Schema) -> set[str]:
    """Names of the definitions that are used from here on, directly or not."""
    found: set[str] = set()
    waiting = list(_references(node))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(definitions[name])
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(_REF)
        for value in node.values():
            yield from _references(value)
