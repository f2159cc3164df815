"""The fields of the language as pydantic models, made of the same annotations.

A valid spec never needs them: msgspec reads it, which costs a fraction of the time. But msgspec stops at the first
error, and pydantic finds all; it also writes JSON Schema. Both are told the same types and bounds, here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, structs, to_builtins
from pydantic import BaseModel, ConfigDict, Field, create_model

from archc.parts.base import Fields

# Types made at run time, which a type checker cannot read.
_ANNOTATED: Any = Annotated
_UNION: Any = Union
_TUPLE: Any = tuple
_DICT: Any = dict
_CONFIG = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())
_BOUNDS = ("gt", "ge", "lt", "le", "min_length", "max_length", "pattern", "description")


@cache
def twin(model: type[Fields]) -> type[BaseModel]:
    """The pydantic model with the fields of `model`, under its name."""
    hints = get_type_hints(model, include_extras=True)
    fields: dict[str, Any] = {}
    tag = model.__struct_config__.tag
    if tag is not None:
        fields["kind"] = (Literal[tag], ...)
    for field in structs.fields(model):
        kind = _translated(hints[field.name])
        if isinstance(field.default, Fields):
            fields[field.name] = (kind, twin(type(field.default)).model_validate(to_builtins(field.default)))
        elif field.default is not NODEFAULT:
            fields[field.name] = (kind, field.default)
        elif field.default_factory is not NODEFAULT:
            fields[field.name] = (kind, Field(default_factory=field.default_factory))
        else:
            fields[field.name] = (kind, ...)
    return create_model(model.__name__, __config__=_CONFIG, __doc__=model.__doc__, **fields)


def _translated(kind: Any) -> Any:
    """A type with pydantic's words in place of msgspec's."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        said = {name: value for meta in arguments[1:] for name in _BOUNDS if (value := getattr(meta, name)) is not None}
        return _ANNOTATED[_translated(arguments[0]), Field(**said)]
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple:
        items = tuple(item if item is Ellipsis else _translated(item) for item in arguments)
        return _ANNOTATED[_TUPLE[items], Field(strict=False)]
    if origin in (dict, Mapping):
        return _DICT[_translated(arguments[0]), _translated(arguments[1])]
    if isinstance(kind, type) and issubclass(kind, Fields):
        return twin(kind)
    return kind


def _union(options: tuple[Any, ...]) -> Any:
    """Alternatives; sections are told apart by their kind."""
    tagged = [
        o for o in options if isinstance(o, type) and issubclass(o, Fields) and o.__struct_config__.tag is not None
    ]
    others = [_translated(option) for option in options if option not in tagged and option is not NoneType]
    if tagged:
        union = _UNION[tuple(twin(option) for option in tagged)]
        others.append(_ANNOTATED[union, Field(discriminator="kind")] if len(tagged) > 1 else union)
    if NoneType in options:
        others.append(None)
    return _UNION[tuple(others)]
