"""Which keys of a config every field of a spec is read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from re import sub
from typing import Any

from msgspec import Struct

from archc.families.base import Key, Table
from archc.importing.reading import Reading, Rope
from archc.importing.translate import answer
from archc.spec.language import SECTIONS

Place = tuple[str, ...]
"""The keys that lead to a value of a config, from outside."""


class Trace(Struct, frozen=True):
    """A source of a field (or of a section, whose fields have sources of their own), and what it reads.

    `direct` says that the field is the value of the one key that is read.
    """

    path: str
    layer: int | None
    reads: tuple[Place, ...]
    direct: bool

    def concerns(self, path: str) -> bool:
        """Whether what is read decides about the field at `path`."""
        field, own = sub(r"#\d+", "", path), self.path
        if self.layer is not None and "block" in (own, field):
            return True
        return own == field or field.startswith(f"{own}.") or own.startswith(f"{field}.")


def trace(config: Any, table: Table, layers: int) -> list[Trace]:
    """Every source of a table with what it reads of a config. Sources that fail are traced as far as they come."""
    found: list[Trace] = []
    for path, source in table.items():
        per_layer = path.split(".")[0] in SECTIONS
        for layer in range(layers) if per_layer else (None,):
            found += _sources(path, source, config, layer)
    return list(dict.fromkeys(found))


def _sources(path: str, source: Any, config: Any, layer: int | None) -> Iterator[Trace]:
    look = _Watched(config, (), layer or 0)
    value, failed = source, False
    try:
        value = answer(source, look)
    except Exception:  # what a table trips over is found when the config is imported
        failed = True
    if look.places:
        yield Trace(path, layer, tuple(dict.fromkeys(look.places)), isinstance(source, Key))
    if failed:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _sources(f"{path}.{key}" if path else key, inner, config, layer)
    elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        for entry in value:
            yield from _sources("", entry, config, layer)


class _Watched(Reading):
    """A reading that notes where in the config everything stands that is asked of it."""

    def __init__(self, config: Any, inside: Place, layer: int, places: list[Place] | None = None) -> None:
        self._inside = inside
        self.places: list[Place] = [] if places is None else places
        super().__init__(config, {}, layer)

    def __getattr__(self, key: str) -> Any:
        if not key.startswith("__"):
            self.places += ((*self._inside, name) for name in _open(self._config, key))
        return super().__getattr__(key)

    def get(self, key: str, default: Any = None) -> Any:
        if not hasattr(self._config, key):
            self.places.append((*self._inside, key))
        return super().get(key, default)

    def rope(self, kind: str | None = None) -> Rope:
        return _WatchedRope(self, kind)

    def section(self, key: str) -> Reading:
        return _Watched(getattr(self._config, key), (*self._inside, key), self.layer, self.places)


def _open(config: Any, key: str) -> list[str]:
    """The key itself, or those that the config's class works it out from."""
    key = getattr(config, "attribute_map", {}).get(key, key)
    own = getattr(type(config), key, None)
    if not isinstance(own, property) or own.fset or own.fget is None:
        return [key]
    asked = _Asked(config)
    with suppress(Exception):  # what it trips over, importing will say
        own.fget(asked)
    return [name for inner in dict.fromkeys(asked.names) for name in _open(config, inner)]


class _Asked:
    """Stands in for a config, and notes what is asked of it."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.names.append(name)
        return getattr(self._config, name)


class _WatchedRope(Rope):
    def __init__(self, owner: _Watched, kind: str | None) -> None:
        super().__init__(owner, kind)
        self._place: Place = ("rope_parameters", self.kind) if self.kind else ("rope_parameters",)
        self._places = owner.places

    def get(self, key: str, default: Any = None) -> Any:
        self._places.append((*self._place, key))
        return super().get(key, default)
