"""Field by field: in what one section of a spec differs from another, and the section with just one difference.

A field that neither side states is no difference: it follows from others, such as kv_heads from heads. One that only
one side states is held against what the other side's part was built with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, Struct, field, structs
from msgspec.structs import replace

from archc.parts.base import Fields

PLAIN: Final = (bool, int, float, str)


class Change(Struct, frozen=True):
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
    names = [name for name in a.__struct_fields__ if name in b.__struct_fields__]
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
        stated = {name: getattr(value, name) for name in value.__struct_fields__ if not _default(value, name)}
        kind = {} if value.__struct_config__.tag is None else {"kind": value.__struct_config__.tag}
        return {**kind, **{name: in_json(inner) for name, inner in stated.items()}}
    return list(value) if isinstance(value, tuple) else value


def _other_kind(a: Fields, b: Fields) -> tuple[Change, set[str]]:
    """A as B's kind, and the fields that it keeps; the others A's kind lacks, or means otherwise."""
    shared = [name for name in a.__struct_fields__ if name in b.__struct_fields__ and name != "kind"]
    own = {name: getattr(fit, name) for name in shared if (fit := _fitting(b, name, getattr(a, name))) is not None}
    others = [name for name in b.__struct_fields__ if name not in own and name != "kind" and not _default(b, name)]
    along = {name: in_json(getattr(b, name)) for name in others}
    return Change(("kind",), _kind(a), _kind(b), replace(b, **own), along), set(own)


def _with(section: Fields, name: str, value: Any) -> Fields:
    """A section with another value of one field. Raises msgspec.ValidationError where it cannot have it."""
    return msgspec.convert(msgspec.to_builtins(replace(section, **{name: value})), type(section))


def _fitting(section: Fields, name: str, value: Any) -> Fields | None:
    """A section with another value of one field, as its own types have it; None where it cannot have it."""
    try:
        return _with(section, name, value)
    except msgspec.ValidationError:
        return None


def _default(section: Fields, name: str) -> bool:
    field = next(field for field in structs.fields(section) if field.name == name)
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return bool(getattr(section, name) == default)


def _kind(section: Fields) -> str:
    return str(getattr(section, "kind", type(section).__name__))


def _inside(a: Fields, name: str, inner: Change) -> Change:
    outer = _changed(a, (name, *inner.path), inner.a, inner.b, inner.after)
    return replace(outer, along=inner.along, problem=inner.problem or outer.problem)


def _changed(a: Fields, path: tuple[str, ...], before: Any, becomes: Any, value: Any) -> Change:
    """A with another value of the field that `path` begins with; its kind stays."""
    try:
        after = _with(a, path[0], value)
    except msgspec.ValidationError as error:
        return Change(path, before, becomes, a, problem=str(error))
    return Change(path, before, becomes, after)


def _built(part: object, name: str) -> Any:
    """What a part was built with under the name of a field that is not stated."""
    value = getattr(part, name, None)
    return value if isinstance(value, PLAIN) else None
