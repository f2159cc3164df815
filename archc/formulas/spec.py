"""A spec with unknown numbers in place of those that say how large a model is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from archc.architecture.build import build
from archc.formulas.unknown import unknown
from archc.parts.base import PartFields
from archc.spec.language import Header
from archc.spec.load import LoadedSpec, overridden
from archc.spec.sections import read_layer

NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "hidden_size": ("hidden_size",),
    "heads": ("attention", "heads"),
    "kv_heads": ("attention", "kv_heads"),
    "head_dim": ("attention", "head_dim"),
    "width": ("ffn", "width"),
    "experts": ("ffn", "experts"),
    "top_k": ("ffn", "top_k"),
    "context": ("context",),
}
"""Numbers by name, and where a spec says them. Kinds of layer that state their own keep it as a number."""


def stated(loaded: LoadedSpec) -> LoadedSpec:
    """The same model with key/value heads and the size of a head said, which are numbers of their own."""
    attention = plain(loaded).get("attention") or {}
    if attention.get("kind", "gqa") != "gqa" or "heads" not in attention:
        return loaded
    heads, width = attention["heads"], loaded.spec.header.hidden_size
    said = {"kv_heads": heads, **({"head_dim": width // heads} if width % heads == 0 else {})}
    changes = [f"attention.{name}={value}" for name, value in said.items() if name not in attention]
    found = overridden(loaded, changes) if changes else loaded
    return found if build(found.spec) == build(loaded.spec) else loaded


def plain(loaded: LoadedSpec) -> Mapping[str, Any]:
    """A spec as nested dicts, lists and scalars."""
    found = loaded.root.plain()
    assert isinstance(found, dict)
    return found


def unknown_header(header: Header) -> Header:
    """A header whose sizes are not known."""
    return replace(header, hidden_size=unknown("hidden_size"), context=unknown("context"))


def unknown_part(loaded: LoadedSpec, kind: str, branch: int, section: str) -> PartFields:
    """The part that a section declares in a branch of a kind of layer; what it takes from `NUMBERS` is not known."""
    part = loaded.spec.kinds[kind].branches[branch].parts[section]
    root = read_layer(loaded.kind_roots[kind])[branch].root
    moved: dict[str, Any] = {}
    for name, path in NUMBERS.items():
        if path[0] != section or getattr(part, path[-1], None) is None:
            continue
        if root.find(path).span == loaded.root.find(path).span:
            moved[path[-1]] = unknown(name)
    return replace(part, **moved)
