"""How a generated module reads a checkpoint: its table of tensors, and which steps reading them takes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from archc.architecture.model import Architecture
from archc.checkpoints.manifest import Manifest, TableRow, build_manifest
from archc.codegen.constants import Constant
from archc.codegen.naming import LINE, literal

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
    redundant: tuple[str, ...] = ()
    redundant_words: str = ""
    redundant_somewhere: bool = False
    """Whether some of them are read for other layers."""
    zero: tuple[str, ...] = ()
    """What may be missing."""
    empty: bool = False
    """Whether there may be stored tensors without numbers, of what the model does not have."""
    beside: tuple[str, ...] = ()
    """How the names of tensors begin that the model leaves out."""
    extra_layers: tuple[str, ...] = ()
    """Regular expressions for how names of layers begin, where there may be more of them than the model has."""
    prefix: str = ""
    complete_prefixes: tuple[str, ...] = ()
    layers_differ: bool = False

    @property
    def ends(self) -> tuple[TableRow, ...]:
        """The rows of the table outside of layers."""
        return tuple(row for row in self.table if _LAYER not in row.stored)

    @property
    def layer(self) -> tuple[TableRow, ...]:
        """The rows of the table for each layer."""
        return tuple(row for row in self.table if _LAYER in row.stored)

    @property
    def fused(self) -> bool:
        """Whether some stored tensor holds several parameters."""
        return any(len(row.fills) > 1 for row in self.table)

    @property
    def reshaped(self) -> bool:
        """Whether some stored tensor has other axes than what it fills."""
        return bool(self.flat or self.unit_axes)

    @property
    def experts(self) -> bool:
        """Whether experts are stored one by one."""
        return any(_EXPERT in row.stored for row in self.table)

    @property
    def needs_patterns(self) -> bool:
        """Whether stored names are looked up with N for the number of their layer."""
        return bool(self._looked_up)

    @property
    def redundant_in_layers(self) -> bool:
        """Whether some name that adds nothing is that of a layer's tensor."""
        return any(_LAYER in name for name in self.redundant)

    @property
    def needs_re(self) -> bool:
        """Whether names are matched."""
        return self.needs_patterns or self.redundant_in_layers or bool(self.extra_layers) or bool(self.zero)

    @property
    def _looked_up(self) -> tuple[str, ...]:
        return (*self.groups, *self.stacked, *self.transposed, *self.flat, *self.unit_axes)

    @property
    def legend(self) -> tuple[str, ...]:
        """The lines above the table for layers."""
        expert = ", and those of expert E into its slice" if self.experts else ""
        braces = "; what stands in braces shares its rows, in this order" if self.fused else ""
        text = f"Where those of layer N go, below layers.N{expert}{braces}."
        return tuple(textwrap.wrap(text, LINE, initial_indent="# ", subsequent_indent="# "))


def loader_view(architecture: Architecture, constants: Iterable[Constant]) -> LoaderView:
    """The loader of an Architecture. Raises UnstorableError where its family has no name for a tensor.

    Numbers that the module's constants hold are printed by name.
    """
    if architecture.family is None:
        return LoaderView()
    manifest = build_manifest(architecture)
    values = {constant.name: constant.value for constant in constants}
    rows = manifest.table
    view = LoaderView(
        table=rows,
        groups={row.stored: _groups(row, values) for row in rows if row.groups > 1},
        stacked=tuple(row.stored for row in rows if row.axis == 1 and not row.transposed),
        transposed=tuple(row.stored for row in rows if row.transposed),
        flat=tuple(row.stored for row in rows if row.flat),
        unit_axes=tuple(row.stored for row in rows if row.unit_axis),
        redundant=tuple(name for name in manifest.optional if not name.endswith(".")),
        redundant_words=_redundant_words(manifest),
        redundant_somewhere=any(row.stored in manifest.ignored for row in rows),
        zero=manifest.zero,
        empty=bool(manifest.empty),
        beside=tuple(name for name in manifest.optional if name.endswith(".")),
        extra_layers=tuple(re.escape(stem) + r"(\d+)\." for stem in manifest.extra_layers),
        prefix=manifest.optional_prefix,
        complete_prefixes=_complete_prefixes(manifest),
        layers_differ=_layers_differ(architecture, manifest),
    )
    single = [name for name in (*view._looked_up, *view.redundant) if re.search(r"\.(E|\d+)\.", name)]
    assert not (view.zero and view.fused), "loader.py.j2 fills single parameters with zeros"
    assert not single, f"loader.py.j2 looks names up with N for every number: {single}"
    strange = [row.stored for row in view.ends if len(row.fills) > 1 or row.fills[0].startswith("layers.")]
    strange += [row.stored for row in view.layer if not row.fills[0].startswith("layers.N.")]
    assert not strange, f"loader.py.j2 has no table for {strange}"
    shared = [row.stored for row in rows if len(row.fills) > 1 and (row.flat or row.unit_axis)]
    assert not shared, f"loader.py.j2 takes rows apart along axes that are those of the model: {shared}"
    return view


def _groups(row: TableRow, values: Mapping[str, str]) -> str:
    number = literal(row.groups)
    names = _COUNTED[row.grouped_by] if row.grouped_by else ()
    return next((name for name in names if values.get(name) == number), number)


def entry(row: TableRow) -> str:
    """A row of a table: what is stored, and what that fills, below it where the line would be too long."""
    stored, found = literal(row.stored), literal(_filled(row))
    line = f"{stored}: {found},"
    return line if 4 + len(line) <= LINE else f"{stored}: (\n        {found}\n    ),"


def _filled(row: TableRow) -> str:
    """The parameters of a layer that share a row, in one name: `attention.{q,k,v}.weight`."""
    fills = [fill.removeprefix("layers.N.") for fill in row.fills]
    if len(fills) == 1:
        return fills[0]
    words = [re.findall(r"[._]|[^._]+", fill) for fill in fills]
    first = _alike(words)
    rests = [found[first:] for found in words]
    last = _alike([found[::-1] for found in rests])
    middles = ["".join(found[: len(found) - last]) for found in rests]
    before, after = "".join(words[0][:first]), "".join(words[0][len(words[0]) - last :])
    return f"{before}{{{','.join(middles)}}}{after}"


def _alike(sequences: Iterable[Sequence[str]]) -> int:
    """How many words all begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False)))


def _redundant_words(manifest: Manifest) -> str:
    read = {row.stored for row in manifest.table}
    found = {
        "the head is the embedding": bool(manifest.tied_head),
        "buffers of old versions": not all(name.endswith(".") or name in read for name in manifest.ignored),
        "norms of layers without": any(name in read for name in manifest.ignored),
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
