"""Which layers and branches of two specs stand at the same place, and in what they differ there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from archc.analysis.changes import Change, changes, in_json
from archc.architecture.model import Branch, Layer
from archc.parts.base import Fields
from archc.spec.language import BranchFields, LayerFields

LONGEST_CYCLE: Final = 64
_MIXERS: Final = frozenset({"attention", "mixer"})
_BESIDE_PARTS: Final = ("norm", "position", "residual", "shared", "reads")


def continued(pattern: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The first `count` layers of a stack, which goes on as it has been going.

    That is by the shortest lead and cycle that spell it: dense, moe, moe goes on with moe. Of two equally short ones
    the cycle is the longer: five local layers and a global one are a cycle of six.

    >>> continued(("local", "local", "full", "local"), 6)
    ('local', 'local', 'full', 'local', 'local', 'full')
    """
    if count <= len(pattern):
        return pattern[:count]
    best, cycle = len(pattern) + 1, 1
    for length in range(1, min(LONGEST_CYCLE, len(pattern)) + 1):
        lead = len(pattern) - length
        while lead and pattern[lead - 1] == pattern[lead - 1 + length]:
            lead -= 1
        if lead + length <= best:
            best, cycle = lead + length, length
    layers = list(pattern)
    while len(layers) < count:
        layers.append(layers[-cycle])
    return tuple(layers)


def layer_changes(
    a: LayerFields, b: LayerFields, ours: Layer, theirs: Layer
) -> Iterator[tuple[tuple[str, ...], Change, dict[int, BranchFields]]]:
    """Every change with its path, and the branches of A that it changes.

    A change that is the same in every branch that has the section goes by the section's name, as it is written;
    otherwise the number of its branch stands before it.
    """
    found: dict[str, tuple[Change, dict[int, BranchFields]]] = {}
    aligned = _aligned(a, b)
    for index, other in aligned:
        mine, theirs_here = a.branches[index], b.branches[other]
        for change, after in _branch_changes(mine, theirs_here, ours.branches[index], theirs.branches[other]):
            key = repr((change.path, change.a, change.b))
            found.setdefault(key, (change, {}))[1][index] = after
    for change, branches in found.values():
        if change.path[0] == "position" and not any(_MIXERS & set(a.branches[index].parts) for index in branches):
            continue  # a branch without a mixer has positions from the sections, and no use for them
        holders = {index for index, _ in aligned if _section(a.branches[index], change.path[0]) is not None}
        if set(branches) >= holders:
            yield change.path, change, branches
            continue
        for index, branch in branches.items():
            yield ("block", str(index), *change.path), change, {index: branch}


def _branch_changes(
    a: BranchFields, b: BranchFields, ours: Branch, theirs: Branch
) -> Iterator[tuple[Change, BranchFields]]:
    """Every change of a branch with the same parts, and A's branch with it."""
    for (name, mine), (_, built_a), (_, built_b) in zip(a.parts.items(), ours.parts, theirs.parts, strict=True):
        for change in changes(mine, b.parts[name], built_a, built_b):
            yield replace(change, path=(name, *change.path)), _with(a, name, change.after)
    for name in _BESIDE_PARTS:
        own, other = getattr(a, name), getattr(b, name)
        if isinstance(own, Fields) and isinstance(other, Fields):
            for change in changes(own, other):
                yield replace(change, path=(name, *change.path)), _with(a, name, change.after)
        elif own != other:
            yield Change((name,), in_json(own), in_json(other), None), _with(a, name, other)


def _with(branch: BranchFields, name: str, value: Any) -> BranchFields:
    if name in branch.parts:
        return replace(branch, parts={**branch.parts, name: value})
    return replace(branch, **{name: value})


def _section(branch: BranchFields, name: str) -> object:
    return branch.parts[name] if name in branch.parts else getattr(branch, name, None)


def structure(layer: LayerFields) -> list[tuple[str, ...]]:
    """The sections that are parts, branch by branch."""
    return [tuple(branch.parts) for branch in layer.branches]


def described(layer: LayerFields) -> list[dict[str, str]]:
    """The same with the kind of every part."""
    return [{name: str(getattr(part, "kind", "")) for name, part in b.parts.items()} for b in layer.branches]


def restructured(a: LayerFields, b: LayerFields) -> LayerFields:
    """B's branches, with A's in place of those that A has too."""
    kept = {other: a.branches[index] for index, other in _aligned(a, b)}
    return LayerFields(tuple(kept.get(index, branch) for index, branch in enumerate(b.branches)))


def _aligned(a: LayerFields, b: LayerFields) -> list[tuple[int, int]]:
    """Branches of both with the same parts, in order."""
    others = structure(b)
    free = list(range(len(others)))
    found = []
    for index, parts in enumerate(structure(a)):
        match = next((other for other in free if others[other] == parts), None)
        if match is not None:
            free.remove(match)
            found.append((index, match))
    return found
