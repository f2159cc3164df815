"""Field by field: in what one section of a spec differs from another, and the section with just one difference.

A field that neither side states is no difference: it follows from others, such as kv_heads from heads. One that only
one side states is held against what the other side's part was built with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from archc.parts.base import Fields

PLAIN: Final = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Change:
    """One field in which B differs from A."""

    path: tuple[str, ...]
    a: Any
    b: Any
    """Both as in JSON; null for what is not there."""
    after: Fields | None
    """A's section with this field as in B; None where B has no such section."""
    along: dict[str, Any] = field(default_factory=dict)
    """With another kind: what A takes from B, which A's kind lacks or means otherwise."""
    problem: str | None = None
    """Why A's section cannot have this field alone."""


def changes(a: Fields, b: Fields, built_a: object = None, built_b: object = None) -> Iterator[Change]:
    """The fields in which `b` differs from `a`. `built_…` is what was built of each: defaults are looked up in it."""
    names = [name for name in type(a).model_fields if name in type(b).model_fields]
    if type(a) is not type(b):
        kind, kept = _other_kind(a, b)
        yield kind
        names = [name for name in names if name in kept]
    for name in names:
        mine, theirs = getattr(a, name), getattr(b, name)
        if mine == theirs:
            continue
        if isinstance(mine, Fields) and isinstance(theirs, Fields):
            for inner in changes(mine, theirs):
                yield _inside(a, name, inner)
            continue
        if mine is None:
            mine = _built(built_a, name)
        elif theirs is None:
            theirs = _built(built_b, name)
        if mine != theirs:
            yield _changed(a, (name,), in_json(mine), in_json(theirs), theirs)


def in_json(value: Any) -> Any:
    """A value of the language as JSON has it; in a section, what is as by default is left out."""
    if isinstance(value, Fields):
        return value.model_dump(mode="json", exclude_defaults=True)
    return list(value) if isinstance(value, tuple) else value


def _other_kind(a: Fields, b: Fields) -> tuple[Change, set[str]]:
    """A as B's kind, and the fields that it keeps; the others A's kind lacks, or means otherwise."""
    own = {name: value for name, value in a if name in type(b).model_fields and name != "kind"}
    problem = None
    try:
        after = type(b).model_validate({**dict(b), **own})
    except ValidationError as error:
        foreign = {str(detail["loc"][0]) for detail in error.errors(include_url=False)}
        own = {name: value for name, value in own.items() if name not in foreign}
        try:
            after = type(b).model_validate({**dict(b), **own})
        except ValidationError as second:
            after, problem = b, _first(second)
    along = {name: in_json(value) for name, value in b if name not in own and name != "kind" and not _default(b, name)}
    return Change(("kind",), _kind(a), _kind(b), after, along, problem), set(own)


def _default(section: Fields, name: str) -> bool:
    return bool(getattr(section, name) == type(section).model_fields[name].get_default(call_default_factory=True))


def _kind(section: Fields) -> str:
    return str(getattr(section, "kind", type(section).__name__))


def _inside(a: Fields, name: str, inner: Change) -> Change:
    outer = _changed(a, (name, *inner.path), inner.a, inner.b, inner.after)
    return replace(outer, along=inner.along, problem=inner.problem or outer.problem)


def _changed(a: Fields, path: tuple[str, ...], before: Any, becomes: Any, value: Any) -> Change:
    """A with another value of the field that `path` begins with; its kind stays."""
    try:
        after = type(a).model_validate({**dict(a), path[0]: value})
    except ValidationError as error:
        return Change(path, before, becomes, a, problem=_first(error))
    return Change(path, before, becomes, after)


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def _built(part: object, name: str) -> Any:
    """What a part was built with under the name of a field that is not stated."""
    value = getattr(part, name, None)
    return value if isinstance(value, PLAIN) else None
