"""The fields of the language by name, for completion: read off the types themselves, in a fraction of the time that the
schema takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import inspect

from archc.parts.kinds import KINDS, PARTS, fields_of
from archc.parts.residual import ResidualFields
from archc.spec.language import ITEM, Header, KindFields

Values = dict[str, tuple[str, ...]]


def field_values(beginning: str = "") -> Values:
    """Every path that has a meaning, with the values that the field may have where they can be listed.

    Of sections that a path with this beginning cannot be in, nothing is read, and little is said.
    """
    found: Values = {}
    names = [name for name in ("position", *PARTS) if f"{name}.".startswith(beginning) or beginning.startswith(name)]
    sections = [(name, fields_of(name, kind)) for name in names for kind in KINDS[name]]
    header, *kinds = inspect.multi_type_info([Header, ResidualFields, *(fields for _, fields in sections)])
    assert isinstance(header, inspect.StructType)
    for field in header.fields:
        _collect(field.name, field.type, found)
    for path, kind in zip(("residual", *(name for name, _ in sections)), kinds, strict=True):
        _collect(path, kind, found)
    found |= {f"{section}.kind": tuple(KINDS[section]) for section in PARTS}
    return found | dict.fromkeys(["block", *(f"block.{name}" for name in ITEM)], ())


def _collect(path: str, kind: inspect.Type, found: Values) -> None:
    """Add a path, the values of its kind, and what lies below it where it is a section."""
    options = list(_options(kind))
    values = [value for option in options for value in _values(option)]
    found[path] = tuple(dict.fromkeys([*found.get(path, ()), *values]))
    for option in options:
        if isinstance(option, inspect.StructType) and option.cls is not KindFields:
            tag = () if option.tag is None else (str(option.tag),)
            if tag:
                found[f"{path}.kind"] = tuple(dict.fromkeys([*found.get(f"{path}.kind", ()), *tag]))
            for field in option.fields:
                _collect(f"{path}.{field.name}", field.type, found)


def _options(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The kinds that a value can be, without what is said about them."""
    if isinstance(kind, inspect.Metadata):
        yield from _options(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for option in kind.types:
            yield from _options(option)
    else:
        yield kind


def _values(kind: inspect.Type) -> Iterator[str]:
    match kind:
        case inspect.LiteralType():
            yield from map(str, kind.values)
        case inspect.BoolType():
            yield from ("true", "false")
        case inspect.NoneType():
            yield "null"
