"""Where in a spec's file a finding of the gate belongs, and how a file is named on other machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from archc import resources
from archc.checkpoints.manifest import UnstorableError, build_manifest, pattern_of
from archc.spec.diagnostics import Span
from archc.spec.source import Node, entries
from archc.spec.validate import at_path

if TYPE_CHECKING:
    from archc.architecture import Compiled
    from archc.render.findings import Finding

_IMPORTED = ", imported"
_SECTION_OF_END = {"embedding": "embedding", "position": "position", "head": "embedding", "final": "norm"}


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file as a report names it: by a URI relative to the root of the repository, or by its name alone.

    `imported` says that it is the config that a spec was imported from: places in the spec are none in the file.
    """

    uri: str
    in_repository: bool
    imported: bool


def place_of(finding: Finding, compiled: Compiled) -> Span:
    """The value of the field that a finding is about; the first line where no text of the file stands for it."""
    root = compiled.loaded.root
    steps = finding.field.split(".") if finding.field else list(_section(finding.tensor, compiled))
    layer = finding.layer if finding.layer is not None else _layer(finding.tensor)
    trees = list(_trees(compiled, layer))
    for length in range(len(steps), 0, -1):  # what --set changed is in no file: the section around it is
        for tree in trees:
            span = at_path(tree, steps[:length])
            if _leads(tree, steps[:length]) and span.file == root.span.file and span.text:
                return span
    return Span(root.span.file, 1, 1, 1, "")


def artifact(file: str) -> Artifact:
    """The file of a span. A spec that was imported stands for the config that it comes from."""
    path, imported = Path(file.removesuffix(_IMPORTED)), file.endswith(_IMPORTED)
    if path.is_dir():
        path /= "config.json"
    path = path.resolve()
    shipped, top = resources.folder("specs").resolve(), _repository()
    if path.is_relative_to(shipped):
        return Artifact(quote(f"specs/{path.relative_to(shipped).as_posix()}"), top == shipped.parent, imported)
    if path.is_relative_to(top):
        return Artifact(quote(path.relative_to(top).as_posix()), True, imported)
    return Artifact(quote(path.name), False, imported)


def _repository() -> Path:
    """The root of the repository around the working folder, or the working folder itself."""
    here = Path.cwd().resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _trees(compiled: Compiled, layer: int | None) -> Iterator[Node]:
    """The trees that a path may start from: of one layer's kind if a layer is given, the spec's own, and all kinds'."""
    loaded = compiled.loaded
    if layer is not None and layer < len(loaded.spec.pattern):
        yield from _with_branches(loaded.kind_roots[loaded.spec.pattern[layer]])
    yield from _with_branches(loaded.root)
    for root in loaded.kind_roots.values():
        yield from _with_branches(root)


def _with_branches(root: Node) -> Iterator[Node]:
    yield root
    block = entries(root).get("block")
    if block is not None and isinstance(block.value, tuple):
        yield from block.value


def _leads(tree: Node, steps: Sequence[str]) -> bool:
    """Whether there is a value at a path."""
    for step in steps:
        if step not in entries(tree):
            return False
        tree = entries(tree)[step]
    return True


def _section(tensor: str, compiled: Compiled) -> Iterator[str]:
    """The section of the spec that declares a stored tensor; nothing where it declares no such tensor."""
    try:
        table = build_manifest(compiled.architecture).table
    except UnstorableError:
        return
    name = pattern_of(tensor)
    fills = next((row.fills[0] for row in table if tensor and row.stored == name), "")
    slot = fills.removeprefix("layers.N.").partition(".")[0]
    if fills.startswith("layers.N.") and not slot.endswith("norm"):
        yield slot
    elif slot:
        yield "norm" if slot.endswith("norm") else _SECTION_OF_END.get(slot.partition("_")[0], slot)


def _layer(tensor: str) -> int | None:
    found = re.search(r"\.([0-9]+)\.", tensor)
    return int(found[1]) if found else None
