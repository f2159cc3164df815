"""Values of a spec that nothing reads: every layer states its own, or what they describe is not there.

Someone who changes such a value changes nothing, and will not be told so by any figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from archc.architecture.compile import Compiled
from archc.architecture.model import Branch
from archc.parts.base import Finding
from archc.parts.position import AlibiFields, RopeFields
from archc.spec.diagnostics import Span
from archc.spec.language import SECTIONS
from archc.spec.sections import ReadBranch, read_layer
from archc.spec.source import Node, entries

_OF_FINAL_NORM = ("final_norm_eps", "final_norm_bias")


def idle_fields(compiled: Compiled) -> Iterator[Finding]:
    """Sections and fields that no layer uses, as large as they can be named, and header fields without effect."""
    root, header = compiled.loaded.root, compiled.loaded.spec.header
    used, placed = _used(compiled)
    written = entries(root)
    for section in SECTIONS:
        if section in written:
            yield from _idle(written[section], (section,), used, placed)
    kinds = entries(entries(written["layers"]).get("kinds"))
    for name, kind in kinds.items():
        for section, node in entries(kind).items():
            yield from _idle(node, ("layers", "kinds", name, section), used, placed)
    for name in _OF_FINAL_NORM:
        if name in written and not header.final_norm:
            yield _finding((name,), "there is no final norm")


def _idle(node: Node, path: tuple[str, ...], used: set[Span], placed: bool) -> Iterator[Finding]:
    """The highest mappings and values at or below `node` in which nothing is used."""
    leaves = set(_leaves(node))
    if not leaves or leaves <= used:
        return
    if leaves & used:
        for name, child in entries(node).items():
            yield from _idle(child, (*path, name), used, placed)
    elif "position" in path and not placed:
        yield _finding(path, "no layer has a mixer that takes positions")
    else:
        yield _finding(path, "every layer states its own, or has none")


def _finding(path: tuple[str, ...], reason: str) -> Finding:
    return Finding("W404", path, f"{'.'.join(path)} has no effect: {reason}", "remove it, or what stands in its way")


def _used(compiled: Compiled) -> tuple[set[Span], bool]:
    """The places of all values that some branch is built from, and whether any branch takes positions."""
    used = set(_leaves(entries(compiled.loaded.root)["norm"]))  # of both ends, whatever the layers state
    placed = False
    layers = {layer.kind: layer for layer, _ in compiled.architecture.distinct}
    for kind, root in compiled.loaded.kind_roots.items():
        for read, branch in zip(read_layer(root), layers[kind].branches, strict=True):
            takes = _takes_position(read, branch)
            placed |= takes
            for name, node in entries(read.root).items():
                if name != "position" or takes:
                    used.update(_leaves(node))
        used.update(_leaves(entries(root).get("block")))
    return used, placed


def _takes_position(read: ReadBranch, branch: Branch) -> bool:
    """Whether positions act in the branch: by a table at the embedding, or in one of its parts."""
    if not isinstance(read.fields.get("position"), RopeFields | AlibiFields):
        return True
    return any(mixer.position_kind for _, mixer in branch.mixers())


def _leaves(node: Node | None) -> Iterator[Span]:
    """The places of all values; a null says that there is none, which is no value."""
    if node is None or node.value is None:
        return
    children: tuple[Node, ...] = ()
    if isinstance(node.value, Mapping):
        children = tuple(node.value.values())
    elif isinstance(node.value, tuple):
        children = node.value
    else:
        yield node.span
    for child in children:
        yield from _leaves(child)
