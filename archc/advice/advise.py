"""Asks every rule about a compiled spec, and finds the places of what they answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archc.advice.idle import idle_fields
from archc.advice.rules import BRANCH_RULES, MODEL_RULES
from archc.architecture.compile import Compiled
from archc.parts.base import Finding
from archc.spec.diagnostics import Diagnostic
from archc.spec.source import Node
from archc.spec.validate import located


def advise(compiled: Compiled) -> list[Diagnostic]:
    """Warnings and notes about a design, in the order of their places; what kinds of layer share is said once."""
    found: dict[tuple[str, str], Diagnostic] = {}
    for finding, trees in _findings(compiled):
        found.setdefault(
            (finding.code, finding.message), located(finding, max(trees, key=lambda tree: _reach(tree, finding.path)))
        )
    return sorted(found.values(), key=lambda one: (one.span.line, one.span.column) if one.span else (0, 0))


def _findings(compiled: Compiled) -> Iterator[tuple[Finding, Sequence[Node]]]:
    """Every finding, with the trees that its path may start from."""
    architecture, loaded = compiled.architecture, compiled.loaded
    for ask in MODEL_RULES:
        for finding in ask(architecture):
            yield finding, (loaded.root, *loaded.kind_roots.values())
    for layer, _ in architecture.distinct:
        kind = loaded.kind_roots[layer.kind]
        for number, branch in enumerate(layer.branches):
            written = kind.find(("block", number))
            for rule in BRANCH_RULES:
                for finding in rule(architecture, branch):
                    yield finding, (written, kind)
    for finding in idle_fields(compiled):
        yield finding, (loaded.root,)


def _reach(tree: Node, path: Sequence[str]) -> int:
    """Steps of the path that the tree has."""
    steps = 0
    while steps < len(path) and tree.find(path[steps : steps + 1]) is not tree:
        tree, steps = tree.find(path[steps : steps + 1]), steps + 1
    return steps
