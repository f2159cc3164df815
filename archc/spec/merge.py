"""Merging one part of a spec over another: layer kinds over the sections, `--set` over everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from archc.parts.base import Fields
from archc.parts.kinds import FfnFields
from archc.parts.position import PositionFields, Scaling
from archc.spec.source import Node


def _by_kind(union: Any) -> dict[str, type[Fields]]:
    """The models of a union (which may be annotated) under the names of their kinds."""
    models = get_args(get_args(union)[0]) or get_args(union)
    return {get_args(model.model_fields["kind"].annotation)[0]: model for model in models}


VARIANTS: Mapping[str, Mapping[str, type[Fields]]] = {
    "ffn": _by_kind(FfnFields),
    "position": _by_kind(PositionFields),
    "scaling": _by_kind(Scaling),
}


def merge(base: Node, change: Node, key: str = "") -> Node:
    """`change` over `base`, mapping by mapping; every value keeps the place it was written at.

    A null in `change` removes what it names. A changed `kind` keeps those fields that the new
    kind also has.
    """
    if not isinstance(base.value, Mapping) or not isinstance(change.value, Mapping):
        return change
    merged = dict(base.value)
    kind = change.value.get("kind")
    if kind is not None and key in VARIANTS:
        model = VARIANTS[key].get(str(kind.value))
        if model is not None:
            merged = {name: node for name, node in merged.items() if name in model.model_fields}
    for name, node in change.value.items():
        if node.value is None and name != "position":
            merged.pop(name, None)
        else:
            merged[name] = merge(merged[name], node, name) if name in merged else node
    return Node(merged, base.span, base.key_span)


def nested(path: tuple[str, ...], leaf: Node) -> Node:
    """A tree that holds nothing but `leaf` at `path`."""
    for name in reversed(path):
        leaf = Node({name: Node(leaf.value, leaf.span, leaf.key_span or leaf.span)}, leaf.span)
    return leaf
