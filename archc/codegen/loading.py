"""How a generated module reads a checkpoint: its table of tensors, and which steps reading them takes."""

from __future__ import annotations

from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.checkpoints.manifest import Manifest, TableRow, build_manifest

_LAYER, _EXPERT = ".N.", ".E."


@dataclass(frozen=True, slots=True)
class LoaderView:
    """What `loader.py.j2` prints. A design without a family has no table: it is stored under its own names."""

    table: tuple[TableRow, ...] = ()
    transposed: tuple[str, ...] = ()
    redundant: tuple[str, ...] = ()
    redundant_words: str = ""
    prefix: str = ""
    complete_prefixes: tuple[str, ...] = ()
    layers_differ: bool = False

    @property
    def fused(self) -> bool:
        """Whether some stored tensor holds several parameters."""
        return any(len(row.fills) > 1 for row in self.table)

    @property
    def experts(self) -> bool:
        """Whether experts are stored one by one."""
        return any(_EXPERT in row.stored for row in self.table)

    @property
    def needs_patterns(self) -> bool:
        """Whether stored names are looked up with N for the number of their layer."""
        return bool(self.transposed) or any(_LAYER in name for name in self.redundant)

    @property
    def legend(self) -> tuple[str, ...]:
        """The lines above the table."""
        first = "# Where each tensor of a checkpoint goes: N is a layer"
        first += ", E an expert." if self.experts else "."
        if not self.fused:
            return (first,)
        return (
            first + " Where several",
            "# parameters are named, they share the rows of the stored tensor in this order.",
        )


def loader_view(architecture: Architecture) -> LoaderView:
    """The loader of an Architecture. Raises UnstorableError where its family has no name for a tensor."""
    if architecture.family is None:
        return LoaderView()
    manifest = build_manifest(architecture)
    view = LoaderView(
        table=manifest.table,
        transposed=tuple(row.stored for row in manifest.table if row.transposed),
        redundant=manifest.optional,
        redundant_words=_redundant_words(architecture, manifest),
        prefix=manifest.optional_prefix,
        complete_prefixes=_complete_prefixes(manifest),
        layers_differ=_layers_differ(architecture, manifest),
    )
    assert not (view.fused and view.experts), "loader.py.j2 reads experts one by one, with one parameter each"
    return view


def _redundant_words(architecture: Architecture, manifest: Manifest) -> str:
    head = ["the head is the embedding"] if architecture.head.tied else []
    buffers = ["buffers of old versions"] if any(_LAYER in name for name in manifest.optional) else []
    return ", ".join(head + buffers)


def _complete_prefixes(manifest: Manifest) -> tuple[str, ...]:
    """How names begin that have the optional prefix, or never have one."""
    names = [row.stored for row in manifest.table] + list(manifest.optional)
    firsts = [name.split(".")[0] + "." for name in names]
    return tuple(dict.fromkeys((manifest.optional_prefix, *firsts))) if manifest.optional_prefix else ()


def _layers_differ(architecture: Architecture, manifest: Manifest) -> bool:
    """Whether some row of the table is not stored for every layer."""
    names = {tensor.name for tensor in architecture.tensors()}
    fills = [fill for row in manifest.table for fill in row.fills if _LAYER in fill]
    layers = range(len(architecture.layers))
    return any(fill.replace(_LAYER, f".{layer}.") not in names for fill in fills for layer in layers)
