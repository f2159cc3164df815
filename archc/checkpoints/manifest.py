"""The manifest: every tensor that a checkpoint of an Architecture must hold, and where it goes.

It is derived twice over from one table: as rules with placeholders (N a layer, E an expert), which
the generated loader prints, and as one entry per stored tensor, which the static check compares
with the headers of a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.errors import ArchcError
from archc.families import Family, PerExpert, family
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
    """Where everything that a checkpoint holds goes, as patterns: their number does not grow with the model.

    `optional` are name patterns of tensors that may be stored and are not read: a tied head, old buffers.
    """

    table: tuple[TableRow, ...]
    optional: tuple[str, ...]
    optional_prefix: str

    def normal(self, stored: str) -> str:
        """A stored name with the prefix that a checkpoint may leave out."""
        known = {row.stored for row in self.table}.union(self.optional)
        longer = self.optional_prefix + stored
        return longer if pattern_of(stored) not in known and pattern_of(longer) in known else stored


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

    A design without a family is stored under the generated module's own names, experts stacked as it holds them.
    """
    parameters = dict.fromkeys(pattern_of(tensor.name) for tensor in architecture.tensors())
    if architecture.family is None:
        return Manifest(tuple(TableRow(name, (name,)) for name in parameters), (), "")
    kin = family(architecture.family)
    table = tuple(_rows(kin, parameters.keys()))
    homeless = sorted(parameters.keys() - {fill for row in table for fill in row.fills})
    if homeless:
        raise UnstorableError(
            f"the family {kin.model_type} stores no {homeless[0]}",
            "change the spec, or leave family out to store a design under its own names; see `archc explain E209`",
        )
    optional = list(kin.ignored)
    if architecture.head.tied:
        optional += [f"{rule.stored}.weight" for rule in kin.rules if rule.fills == ("head",)]
    return Manifest(table, tuple(optional), kin.optional_prefix)


def _rows(kin: Family, parameters: Set[str]) -> Iterator[TableRow]:
    """The family's rules, narrowed to what the Architecture has."""
    for rule in kin.rules:
        if isinstance(rule, PerExpert):
            if parameters >= set(rule.fills):
                yield TableRow(rule.stored, rule.fills)
            continue
        for suffix in ("weight", "bias"):
            fills = tuple(f"{fill}.{suffix}" for fill in rule.fills)
            if parameters >= set(fills):
                yield TableRow(f"{rule.stored}.{suffix}", fills, rule.transposed and suffix == "weight")


def stored_entries(architecture: Architecture, manifest: Manifest) -> Iterator[Entry]:
    """Every stored tensor: one entry per layer, and per expert where experts are stored one by one."""
    tensors = {tensor.name: tensor for tensor in architecture.tensors()}
    for row in manifest.table:
        for layer in range(len(architecture.layers)) if ".N." in row.stored else range(1):
            yield from _entries(row, layer, tensors)


def _entries(row: TableRow, layer: int, tensors: Mapping[str, Tensor]) -> Iterator[Entry]:
    names = tuple(fill.replace(".N.", f".{layer}.") for fill in row.fills)
    if not tensors.keys() >= set(names):
        return
    fills = [tensors[name] for name in names]
    stored = row.stored.replace(".N.", f".{layer}.")
    if ".E." in stored:
        for expert in range(fills[0].shape[0]):
            yield Entry(stored.replace(".E.", f".{expert}."), fills[0].shape[1:], names)
        return
    shape = (sum(tensor.shape[0] for tensor in fills), *fills[0].shape[1:])
    yield Entry(stored, shape[::-1] if row.transposed else shape, names)
