"""Merging one part of a spec over another: layer kinds over the sections, `--set` over everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from archc.parts.kinds import KINDS, PARTS, fields_of
from archc.spec.source import Node

REMOVABLE: Final = frozenset({"position", *PARTS})
"""Sections that are not optional: a null says that there is none, and stays to say so."""


def merge(base: Node, change: Node, key: str = "") -> Node:
    """`change` over `base`, mapping by mapping; every value keeps the place it was written at.

    A null in `change` removes what it names. A changed `kind` keeps those fields that the new
    kind also has.
    """
    if not isinstance(base.value, Mapping) or not isinstance(change.value, Mapping):
        return change
    merged = dict(base.value)
    kind = change.value.get("kind")
    if kind is not None and str(kind.value) in KINDS.get(key, ()):
        known = fields_of(key, str(kind.value)).__struct_fields__
        merged = {name: node for name, node in merged.items() if name in known}
    for name, node in change.value.items():
        if node.value is None and name not in REMOVABLE:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged[name], node, name) if name in merged else node
    return Node(merged, base.span, base.key_span)


def nested(path: tuple[str, ...], leaf: Node) -> Node:
    """A tree that holds nothing but `leaf` at `path`."""
    for name in reversed(path):
        leaf = Node({name: Node(leaf.value, leaf.span, leaf.key_span or leaf.span)}, leaf.span)
    return leaf
