"""Saying well what is wrong with a tree: pydantic finds all of it, in the twins of the language's fields."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from archc.parts.base import Fields
from archc.parts.kinds import KINDS, fields_of
from archc.spec.diagnostics import Diagnostic, Level
from archc.spec.language import SECTIONS, Header
from archc.spec.source import Node
from archc.spec.twins import twin
from archc.spec.validate import GUESSES

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "none_required": "null",
}


def diagnose(model: type[Fields], node: Node, inside: tuple[str, ...]) -> list[Diagnostic]:
    """Everything that is wrong with `node` as an instance of `model`; `inside` is the path that leads to it."""
    try:
        twin(model).model_validate(node.plain())
    except ValidationError as error:
        return list(_diagnoses(error, twin(model), node, inside))
    raise AssertionError(f"msgspec refuses a {model.__name__} that pydantic accepts")


def _diagnoses(
    error: ValidationError, model: type[BaseModel], node: Node, inside: tuple[str, ...]
) -> Iterator[Diagnostic]:
    found: dict[tuple[str | int, ...], list[Any]] = {}
    for detail in error.errors(include_url=False):
        found.setdefault(_real_path(node, detail["loc"], detail["type"]), []).append(detail)
    entered = {path[:length] for path in found for length in range(len(path))}
    for number, (path, details) in enumerate(found.items()):
        if path in entered and all(detail["type"] in _EXPECTED for detail in details):
            continue  # another alternative of the same field got further into the value
        yield _diagnosis(model, node, path, details, inside, guess=number < GUESSES)


def _real_path(node: Node, location: tuple[str | int, ...], problem: str) -> tuple[str | int, ...]:
    """The path in the document: pydantic's location without the names of alternatives."""
    path: list[str | int] = []
    for index, step in enumerate(location):
        value = node.value
        child = _child(value, step)
        if child is not None:
            node = child
        elif index == len(location) - 1 and problem == "missing":
            pass
        else:
            continue
        path.append(step)
    return tuple(path)


def _child(value: object, step: str | int) -> Node | None:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, tuple) and isinstance(step, int) and step < len(value) else None


def _diagnosis(
    model: type[BaseModel],
    node: Node,
    path: tuple[str | int, ...],
    details: list[Any],
    inside: tuple[str, ...],
    *,
    guess: bool,
) -> Diagnostic:
    problem, detail = details[0]["type"], details[0]
    target = node.find(path)
    path = inside + path
    name = ".".join(str(step) for step in path)
    span = target.span
    value = _shown(target)
    if detail["loc"][-1:] == ("[key]",):  # pydantic's word for a key that is wrong itself
        name, value, span = "the key", repr(str(path[-1])), target.key_span or span
    match problem:
        case "extra_forbidden":
            code, message = "E101", f"unknown key {path[-1]!r}" + _within(path[:-1])
            known = known_keys(model, detail["loc"][:-1])
            mend = _suggest_key(str(path[-1]), known, path[:-1]) if guess else _known(known)
            span = target.key_span or span
        case "missing":
            code, message = "E102", f"{name} is missing"
            mend = f"add {path[-1]}: …  (`archc explain {name}` says what it means)"
            span = target.key_span or span
        case "union_tag_not_found":
            code, message = "E102", f"{name}.kind is missing"
            mend = f"add kind: one of {_choices(detail)}"
            span = target.key_span or span
        case "union_tag_invalid":
            given = target.value.get("kind") if isinstance(target.value, Mapping) else None
            code, message = "E104", f"{name} has no kind {_shown(given) if given else value}"
            mend = f"choose one of {_choices(detail)}"
            span = given.span if given else span
        case _ if problem in _EXPECTED:
            expected = list(dict.fromkeys(_expected(one) for one in details))
            code, message = "E103", f"{name} must be {' or '.join(expected)}, not {value}"
            mend = f"give {' or '.join(expected)}"
        case "literal_error":
            expected = list(dict.fromkeys(_expected(one) for one in details))
            code, message = "E104", f"{name} cannot be {value}"
            mend = f"choose {' or '.join(expected)}"
        case "string_pattern_mismatch":
            code, message = "E104", f"{name} cannot be {value}"
            mend = f"it may hold only what matches {detail['ctx']['pattern']}"
        case _:
            code, message = "E104", f"{name} cannot be {value}"
            close = [one for one in details if one["type"] not in _EXPECTED]  # the others wanted another type
            mend = "; ".join(dict.fromkeys(one["msg"].replace("Input should", "it should") for one in close))
    return Diagnostic(code, Level.ERROR, message, mend, span, name)


def _expected(detail: Any) -> str:
    if detail["type"] in _EXPECTED:
        return _EXPECTED[detail["type"]]
    if detail["type"] == "literal_error":
        return str(detail["ctx"]["expected"])
    return str(detail["msg"]).replace("Input should be ", "")


def _choices(detail: Any) -> str:
    return str(detail["ctx"].get("expected_tags", "")) or "the kinds in `archc schema`"


def _shown(node: Node) -> str:
    value = node.value
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, str) else str(value)
    return f"the text {text}" if isinstance(value, str) and len(text) < 60 else text[:60]


def _within(path: tuple[str | int, ...]) -> str:
    return f" in {'.'.join(str(step) for step in path)}" if path else ""


def known_keys(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """The keys that the mapping at a pydantic location may have."""
    models = [model]
    for step in location:
        tagged = [m for m in models if step in _kinds(m)]
        if tagged:
            models = tagged
            continue
        inner = [m.model_fields[str(step)].annotation for m in models if str(step) in m.model_fields]
        models = [m for annotation in inner for m in _models(annotation)] or models
    if models == [twin(Header)]:
        return list(dict.fromkeys([*Header.__struct_fields__, *SECTIONS]))
    return sorted({name for m in models for name in m.model_fields})


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind else ()


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _models(get_args(annotation)[0])
    else:
        for inner in get_args(annotation):
            yield from _models(inner)


def _suggest_key(key: str, known: list[str], path: tuple[str | int, ...]) -> str:
    near = difflib.get_close_matches(key[:100], known, 1, 0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    for section in SECTIONS:
        kinds = KINDS.get(section, ())
        if section not in path and any(key in fields_of(section, kind).__struct_fields__ for kind in kinds):
            return f"{key!r} belongs to {section}"
    return _known(known)


def _known(keys: Iterable[str]) -> str:
    return f"known keys here: {', '.join(keys)}"
