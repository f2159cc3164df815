"""How a generated module reads a checkpoint: its table of tensors, and which steps reading them takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from archc.architecture.model import Architecture
from archc.checkpoints.manifest import Manifest, TableRow, build_manifest
from archc.codegen.constants import Constant
from archc.codegen.naming import literal

_LAYER, _EXPERT = ".N.", ".E."
_COUNTED = {"kv_heads": ("KV_HEADS",), "rows": ("EXPERT_WIDTH", "FFN_WIDTH")}
"""The constants that say how many groups there are."""


@dataclass(frozen=True, slots=True)
class LoaderView:
    """What `loader.py.j2` prints. A design without a family has no table: it is stored under its own names."""

    table: tuple[TableRow, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    """The number of groups that the rows of a stored tensor stand in, as an expression."""
    stacked: tuple[str, ...] = ()
    transposed: tuple[str, ...] = ()
    flat: tuple[str, ...] = ()
    unit_axes: tuple[str, ...] = ()
    deep: bool = False
    """Whether stored tensors are to be laid out anew that hold all experts."""
    redundant: tuple[str, ...] = ()
    redundant_words: str = ""
    beside: tuple[str, ...] = ()
    """How the names of tensors begin that the model leaves out."""
    extra_layers: tuple[str, ...] = ()
    """Regular expressions for how names of layers begin, where there may be more of them than the model has."""
    prefix: str = ""
    complete_prefixes: tuple[str, ...] = ()
    layers_differ: bool = False
    buffers: bool = False
    """Whether the model has buffers that are stored."""

    @property
    def fused(self) -> bool:
        """Whether some stored tensor holds several parameters."""
        return any(len(row.fills) > 1 for row in self.table)

    @property
    def lists(self) -> bool:
        """Whether the table names parameters in lists."""
        return self.fused or self.deep

    @property
    def experts(self) -> bool:
        """Whether experts are stored one by one."""
        return any(_EXPERT in row.stored for row in self.table)

    @property
    def needs_patterns(self) -> bool:
        """Whether stored names are looked up with N for the number of their layer."""
        return bool(self._looked_up) or any(_LAYER in name for name in self.redundant)

    @property
    def needs_re(self) -> bool:
        """Whether names are matched."""
        return self.needs_patterns or bool(self.extra_layers)

    @property
    def _looked_up(self) -> tuple[str, ...]:
        return (*self.groups, *self.stacked, *self.transposed, *self.flat, *self.unit_axes)

    @property
    def legend(self) -> tuple[str, ...]:
        """The lines above the table."""
        first = "# Where each tensor of a checkpoint goes: N is a layer"
        first += ", E an expert." if self.experts else "."
        if not self.fused:
            return (first,)
        if self.experts:
            return (
                first,
                "# Where several parameters are named, they share the rows of the stored tensor in this",
                "# order.",
            )
        return (
            first + " Where several",
            "# parameters are named, they share the rows of the stored tensor in this order.",
        )


def loader_view(architecture: Architecture, constants: Iterable[Constant]) -> LoaderView:
    """The loader of an Architecture. Raises UnstorableError where its family has no name for a tensor.

    Numbers that the module's constants hold are printed by name.
    """
    buffers = any(tensor.buffer for tensor in architecture.tensors())
    if architecture.family is None:
        return LoaderView(buffers=buffers)
    manifest = build_manifest(architecture)
    values = {constant.name: constant.value for constant in constants}
    rows = manifest.table
    view = LoaderView(
        table=rows,
        groups={row.stored: _groups(row, values) for row in rows if row.groups > 1},
        stacked=tuple(row.stored for row in rows if row.axis == 1),
        transposed=tuple(row.stored for row in rows if row.transposed),
        flat=tuple(row.stored for row in rows if row.flat),
        unit_axes=tuple(row.stored for row in rows if row.unit_axis),
        deep=_deep(architecture, manifest),
        redundant=tuple(name for name in manifest.optional if not name.endswith(".")),
        redundant_words=_redundant_words(manifest),
        beside=tuple(name for name in manifest.optional if name.endswith(".")),
        extra_layers=tuple(re.escape(stem) + r"(\d+)\." for stem in manifest.extra_layers),
        prefix=manifest.optional_prefix,
        complete_prefixes=_complete_prefixes(manifest),
        layers_differ=_layers_differ(architecture, manifest),
        buffers=buffers,
    )
    single = [name for name in (*view._looked_up, *view.redundant) if re.search(r"\.(E|\d+)\.", name)]
    assert not single, f"loader.py.j2 looks names up with N for every number: {single}"
    return view


def _groups(row: TableRow, values: Mapping[str, str]) -> str:
    number = literal(row.groups)
    names = _COUNTED[row.grouped_by] if row.grouped_by else ()
    return next((name for name in names if values.get(name) == number), number)


def _deep(architecture: Architecture, manifest: Manifest) -> bool:
    """Whether experts are laid out on disk as the model does not hold them: not only matrices are transposed."""
    axes = {tensor.name: len(tensor.shape) for tensor in architecture.tensors()}
    transposed = {fill for row in manifest.table if row.transposed for fill in row.fills}
    layers = range(len(architecture.layers))
    names = (fill.replace(_LAYER, f".{layer}.") for fill in transposed for layer in layers)
    return any(row.axis or row.flat for row in manifest.table) or any(axes.get(name, 0) > 2 for name in names)


def _redundant_words(manifest: Manifest) -> str:
    single = [name for name in manifest.ignored if not name.endswith(".")]
    found = {
        "the head is the embedding": bool(manifest.tied_head),
        "buffers of old versions": not all(name.endswith(".weight") for name in single),
        "matrices of no width": any(name.endswith(".weight") for name in single),
    }
    return ", ".join(words for words, is_so in found.items() if is_so)


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
