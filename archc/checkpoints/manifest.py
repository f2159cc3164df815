"""The manifest: every tensor that a checkpoint of an Architecture must hold, and where it goes.

It is derived twice over from one table: as rules with placeholders (N a layer, E an expert), which
the generated loader prints, and as one entry per stored tensor, which the static check compares
with the headers of a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.errors import ArchcError
from archc.families import Family, Module, PerExpert, family
from archc.parts.base import Tensor

_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A stored name (a pattern) and the parameters (patterns) that share its rows."""

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored tensor: its name, its shape on disk, and the parameters it fills."""

    name: str
    shape: tuple[int, ...]
    fills: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a checkpoint must hold, and what it may hold besides.

    `optional` are name patterns of tensors that may be stored and are not read: a tied head, old buffers.
    """

    table: tuple[TableRow, ...]
    entries: Mapping[str, Entry]
    optional: tuple[str, ...]
    optional_prefix: str

    def normal(self, stored: str) -> str:
        """A stored name as the entries have it: with the prefix that a checkpoint may leave out."""
        if stored in self.entries or stored.startswith(self.optional_prefix):
            return stored
        longer = self.optional_prefix + stored
        return longer if longer in self.entries or pattern_of(longer) in self.optional else stored


class UnstorableError(ArchcError):
    """The family has no place for a tensor of the Architecture."""

    exit_code = 1


def pattern_of(name: str) -> str:
    """A stored name with its layer's number as N and its expert's as E.

    >>> pattern_of("model.layers.3.mlp.experts.17.up_proj.weight")
    'model.layers.N.mlp.experts.E.up_proj.weight'
    """
    letters = iter("NE")
    return _NUMBER.sub(lambda number: next(letters, number.group()), name)


def build_manifest(architecture: Architecture) -> Manifest:
    """The manifest of an Architecture. Raises UnstorableError where its family has no name for a tensor.

    A design without a family is stored under the generated module's own names.
    """
    tensors = {tensor.name: tensor for tensor in architecture.tensors()}
    kin = family(architecture.family) if architecture.family else _own_names(tensors)
    table = tuple(_rows(kin, {pattern_of(name) for name in tensors}))
    entries = {entry.name: entry for row in table for entry in _entries(row, tensors, len(architecture.layers))}
    homeless = sorted(set(tensors) - {fill for entry in entries.values() for fill in entry.fills})
    if homeless:
        raise UnstorableError(
            f"the family {kin.model_type} stores no {homeless[0]} ({len(homeless)} such tensors; see `archc explain E209`)",
            "change the spec, or leave family out to store a design under its own names",
        )
    optional = list(kin.ignored)
    if architecture.head.tied:
        heads = [rule.stored for rule in kin.rules if rule.fills == ("head",)]
        optional += [f"{stored}.weight" for stored in heads]
    return Manifest(table, entries, tuple(optional), kin.optional_prefix)


def _own_names(tensors: Mapping[str, Tensor]) -> Family:
    stems = dict.fromkeys(re.sub(r"\.(weight|bias)$", "", pattern_of(name)) for name in tensors)
    stacked = {pattern_of(t.name) for t in tensors.values() if t.slices_used is not None}
    return Family(
        "(own names)",
        tuple(
            PerExpert(f"{stem}.E", (stem,)) if stem in stacked else Module(stem, (stem,))
            for stem in (*stems, *(["head"] if "head.weight" not in tensors else []))
        ),
    )


def _rows(kin: Family, parameters: set[str]) -> Iterator[TableRow]:
    """The family's rules, narrowed to what the Architecture has."""
    for rule in kin.rules:
        if isinstance(rule, PerExpert):
            if parameters.issuperset(rule.fills):
                yield TableRow(rule.stored, rule.fills)
            continue
        for suffix in ("weight", "bias"):
            fills = tuple(f"{fill}.{suffix}" for fill in rule.fills)
            if parameters.issuperset(fills):
                yield TableRow(f"{rule.stored}.{suffix}", fills, rule.transposed and suffix == "weight")


def _entries(row: TableRow, tensors: Mapping[str, Tensor], layers: int) -> Iterator[Entry]:
    """One entry per layer (and expert) whose tensors the row fills."""
    for layer in range(layers) if ".N." in row.stored else range(1):
        names = tuple(fill.replace(".N.", f".{layer}.") for fill in row.fills)
        if names[0] not in tensors:
            continue
        fills = [tensors[name] for name in names]
        stored = row.stored.replace(".N.", f".{layer}.")
        if fills[0].slices_used is not None:
            for expert in range(fills[0].shape[0]):
                yield Entry(_numbered(stored, expert), fills[0].shape[1:], names)
            continue
        shape = (sum(tensor.shape[0] for tensor in fills), *fills[0].shape[1:])
        yield Entry(stored, shape[::-1] if row.transposed else shape, names)


def _numbered(stored: str, expert: int) -> str:
    return re.sub(r"\.E(?=\.|$)", f".{expert}", stored)
