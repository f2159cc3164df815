"""Writes a translated config as the text of a spec, with a comment on every value that the config does not state."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archc.importing.stack import Stack
from archc.importing.translate import Leaf, Tree

WIDTH = 100
_EXACT = 1e15
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./()-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def emit(header: Tree, stack: Stack, about: list[str], place: str) -> str:
    """The text of the spec. `about` are lines of comment that open it, `place` is what states the values."""
    lines = [f"# {line}" for line in about]
    layers: Tree | Leaf
    count = header.pop("layers")
    if stack.kinds:
        kinds: Tree = {name: kind or Leaf(None) for name, kind in stack.kinds.items()}
        layers = {"count": count, "kinds": kinds, "pattern": Leaf(stack.pattern)}
    else:
        assert isinstance(count, Leaf)
        layers = count
    after: Tree = {key: header.pop(key) for key in ("logits", "undeclared", "published") if key in header}
    whole: Tree = {**header, **stack.base, **after, "layers": layers}
    return "\n".join([*lines, *_mapping(whole, 0, place)]) + "\n"


def _mapping(tree: Tree, depth: int, place: str) -> Iterator[str]:
    for key, value in tree.items():
        yield from _entry(key, value, depth, place)


def _entry(key: str, value: Leaf | Tree | list[Tree], depth: int, place: str) -> Iterator[str]:
    start = f"{'  ' * depth}{key}:"
    if isinstance(value, Leaf):
        yield f"{start} {_leaf(value)}{_comment(value, place)}"
    elif isinstance(value, list):
        yield start
        for entry in value:
            first, *rest = list(_mapping(entry, depth + 2, place))
            yield f"{'  ' * (depth + 1)}- {first.strip()}"
            yield from rest
    elif (flow := _flow(value)) is not None and len(start) + len(flow) < WIDTH:
        yield f"{start} {flow}"
    else:
        yield start
        yield from _mapping(value, depth + 1, place)


def _flow(tree: Tree) -> str | None:
    """The mapping in one line, if nothing in it needs a comment."""
    parts = []
    for key, value in tree.items():
        if isinstance(value, list):
            return None
        inner = _flow(value) if isinstance(value, dict) else None if value.unstated else _leaf(value)
        if inner is None:
            return None
        parts.append(f"{key}: {inner}")
    return f"{{{', '.join(parts)}}}"


def _comment(leaf: Leaf, place: str) -> str:
    if not leaf.unstated:
        return ""
    keys = ", ".join(leaf.unstated)
    alone = len(leaf.keys) == 1
    return f"  # not in {place}; class default" if alone else f"  # {keys} not in {place}; class default"


def _leaf(leaf: Leaf) -> str:
    if isinstance(leaf.value, list):
        return f"[{', '.join(_scalar(entry) for entry in leaf.value)}]"
    return _scalar(leaf.value)


def _scalar(value: object) -> str:
    """A scalar that reads back as the same value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if "e" not in repr(value) or "." in repr(value) else repr(value).replace("e", ".0e")
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in text if ord(c) < 0x10000)
    return f'"{escaped}"'
