"""The spec language as JSON Schema 2020-12, from the models that also check specs.

pydantic describes the header and every kind of part; what is added here is how they fit together. A uniform stack
(`layers: 30`) needs its sections in full. Where layers differ, the sections and the kinds of layer share the work, as
do the sections and the branches of `block`: nothing in them is required, and null removes what it names. That they
complete each other is left to `archc check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from archc.parts.kinds import KINDS, PARTS, fields_of
from archc.parts.norm import NormFields
from archc.parts.residual import ResidualFields
from archc.spec.language import ITEM, MAX_BRANCHES, SECTIONS, BranchHead, Header, KindFields
from archc.spec.twins import twin

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"
_NULL = {"type": "null"}
_SAID = {
    "norm": "The norms of a layer.",
    "position": "How attention sees positions; null is the same as kind: none.",
    "attention": "Softmax attention; null: none.",
    "mixer": "What lets positions meet in place of attention, or beside it on the same input; null: none.",
    "ffn": "What works on each position alone; null: none.",
    "residual": "How a branch joins the residual stream.",
    "block": "The branches of a layer in order, written out, where they are not one for its mixers and one for ffn.",
}


def complete_language() -> Schema:
    """The language with every section in full, below the header and inside kinds of layer alike."""
    header, layer = twin(Header).model_json_schema(), _sections_model().model_json_schema()
    definitions = {**header["$defs"], **layer["$defs"]}
    sections = {**layer["properties"], "block": _block({name: {"type": "object"} for name in ITEM})}
    for name in SECTIONS:
        sections[name]["description"] = _SAID[name]
    definitions[KindFields.__name__]["properties"] = {name: sections[name] for name in SECTIONS}
    language: Schema = _cleaned(
        {
            "properties": {**header["properties"], **sections},
            "required": header["required"],
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
    partial = {name: _partial(section) for name, section in sections.items()}
    partial["block"] = _cleaned(_block(partial))
    definitions[KindFields.__name__]["properties"] = {name: _nullable(section) for name, section in partial.items()}
    return {
        "$schema": DIALECT,
        "title": "archc spec, version 1",
        "description": (Header.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            **language["properties"],
            **{name: section for name, section in partial.items() if name not in Header.__struct_fields__},
        },
        "required": language["required"],
        "additionalProperties": False,
        "if": {"properties": {"layers": {"type": "integer"}}, "not": {"required": ["block"]}},
        "then": {
            "required": ["ffn"],
            "anyOf": [{"required": ["attention"]}, {"required": ["mixer"]}],
            "dependentSchemas": {
                "attention": {"anyOf": [{"properties": {"attention": _NULL}}, {"required": ["position"]}]}
            },
            "properties": {name: section for name, section in sections.items() if name != "block"},
        },
        "$defs": definitions,
    }


def _sections_model() -> type[BaseModel]:
    """The sections of a layer but block, each in any of its kinds."""
    fields: dict[str, Any] = {name: (_of_any_kind(name), ...) for name in ("position", *PARTS)}
    return create_model("SectionsFields", norm=(twin(NormFields), ...), residual=(twin(ResidualFields), None), **fields)


def _of_any_kind(section: str) -> Any:
    """The union of a section's kinds, told apart by `kind`, or null."""
    kinds: Any = reduce(or_, (twin(fields_of(section, kind)) for kind in KINDS[section]), None)
    return Annotated[kinds, Field(discriminator="kind")] if kinds else None


def _block(sections: Schema) -> Schema:
    """A list of branches that state `sections`, and what else a branch states."""
    properties: Schema = dict(twin(BranchHead).model_json_schema()["properties"])
    for name in ITEM:
        if name in SECTIONS:
            fit = _nullable if name in ("norm", "position") else _not_null
            said = f"The branch's {name}: what differs from the section {name}."
            properties[name] = {**fit(sections[name]), "description": said}
    branch = {
        "type": "object",
        "properties": {name: properties[name] for name in ITEM},
        "additionalProperties": False,
    }
    return {"type": "array", "minItems": 1, "maxItems": MAX_BRANCHES, "items": branch, "description": _SAID["block"]}


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


def _not_null(field: Schema) -> Schema:
    options = [option for option in field.get("anyOf", []) if option != _NULL]
    return {**field, "anyOf": options} if options else field


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
