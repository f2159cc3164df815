"""The manifest: every tensor that a checkpoint of an Architecture must hold, and where it goes.

It is derived twice over from one table: as rules with placeholders (N a layer, E an expert), which
the generated loader prints, and as one entry per stored tensor, which the static check compares
with the headers of a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archc.architecture.model import Architecture, Layer
from archc.errors import ArchcError
from archc.families import Family, Module, Rule, family
from archc.parts.base import Tensor

_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.|$)")
_PLACE = re.compile(r"(?<=\.)([0-9]+|[NE])(?=\.|$)")
_LAYER, _EXPERT = "layers.N.", ".E."


@dataclass(frozen=True, slots=True)
class TableRow:
    """A stored name (a pattern), the parameters (patterns) that share its rows, and how they lie on disk.

    The parameters' rows, along `axis`, stand in `groups`, each with an equal share of every parameter. Then, if
    `transposed`, the last two axes change places; then, if `flat`, the first two become one; with `unit_axis`, an axis
    of size 1 comes before the last.
    """

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False
    groups: int = 1
    grouped_by: Literal["kv_heads", "rows"] | None = None
    """What the groups are, where it is not their number that is fixed."""
    axis: int = 0
    flat: bool = False
    unit_axis: bool = False

    def shape(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape on disk of what fills parameters of these shapes."""
        found = list(shapes[0])
        if len(shapes) > 1:
            found[self.axis] = sum(shape[self.axis] for shape in shapes)
        if self.transposed:
            found[-2:] = found[-1], found[-2]
        if self.flat:
            found[:2] = [found[0] * found[1]]
        if self.unit_axis:
            found.insert(-1, 1)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored tensor: its name, its shape on disk, the parameters it fills, and the row it comes of."""

    name: str
    shape: tuple[int, ...]
    fills: tuple[str, ...]
    row: TableRow
    expert: int | None = None
    """Which slice of the parameters it fills, where experts are stored one by one."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where everything that a checkpoint holds goes, as patterns: their number does not grow with the model.

    Not read, though they may be stored: `ignored`, of which one that ends in a dot stands for everything below; the
    `tied_head`; layers behind the first `layers`, under any of `extra_layers`; and of `empty`, those without a number.
    """

    table: tuple[TableRow, ...]
    ignored: tuple[str, ...] = ()
    tied_head: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    """Those that are read, and may be missing."""
    optional_prefix: str = ""
    extra_layers: tuple[str, ...] = ()
    layers: int = 0

    @property
    def optional(self) -> tuple[str, ...]:
        """Name patterns of tensors that may be stored and are not read."""
        return (*self.ignored, *self.tied_head)

    def normal(self, stored: str) -> str:
        """A stored name with the prefix that a checkpoint may leave out."""
        if not self.optional_prefix:
            return stored
        known = {_key(row.stored) for row in self.table}.union(map(_key, self.optional))
        longer = self.optional_prefix + stored
        return longer if _key(stored) not in known and _key(longer) in known else stored

    def may_lack(self, name: str) -> bool:
        """Whether a tensor that is read may be missing all the same."""
        return _key(name) in map(_key, self.zero)

    def leaves_out(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape may be stored and is not read."""
        if 0 in shape and _key(name) in map(_key, self.empty):
            return True
        below = tuple(pattern for pattern in self.optional if pattern.endswith("."))
        if name.startswith(below) or _key(name) in map(_key, self.optional):
            return True
        numbers = (re.match(re.escape(stem) + r"([0-9]+)\.", name) for stem in self.extra_layers)
        return any(number is not None and int(number[1]) >= self.layers for number in numbers)


class UnstorableError(ArchcError):
    """The family has no place for a tensor of the Architecture."""

    exit_code = 1

    @classmethod
    def of(cls, kin: Family, problem: str) -> UnstorableError:
        """The error that a family stores no such thing."""
        mend = "change the spec, or leave family out to store a design under its own names; see `archc explain E209`"
        return cls(f"the family {kin.model_type} stores {problem}", mend)


def pattern_of(name: str) -> str:
    """A stored name with its layer's number as N and its expert's as E.

    >>> pattern_of("model.layers.3.mlp.experts.17.up_proj.weight")
    'model.layers.N.mlp.experts.E.up_proj.weight'
    """
    letters = iter("NE")
    return _NUMBER.sub(lambda number: next(letters, number.group()), name)


def _key(name: str) -> str:
    """What a name and its pattern have in common, whichever of their numbers the pattern leaves open."""
    return _PLACE.sub("#", name)


def knows_tensors(architecture: Architecture) -> bool:
    """Whether it is known where a checkpoint of this family holds what."""
    return architecture.family is None or bool(family(architecture.family).rules)


def build_manifest(architecture: Architecture) -> Manifest:
    """The manifest of an Architecture. Raises UnstorableError where its family has no name for a tensor.

    A design without a family is stored under the generated module's own names, experts stacked as it holds them.
    """
    if architecture.family is None:
        parameters = dict.fromkeys(pattern_of(tensor.name) for tensor in architecture.tensors())
        return Manifest(tuple(TableRow(name, (name,)) for name in parameters))
    kin, holders = family(architecture.family), list(_holders(architecture))
    table = tuple(row for rule in kin.rules for row in _rows(kin, rule, holders))
    _require_places(kin, table, holders)
    read = {row.stored for row in table}
    always_read = {row.stored for row in table if not any(_lacks(holder, row) for holder in holders)}
    heads = (f"{rule.stored}.weight" for rule in kin.rules if rule.fills == ("head",) and architecture.head.tied)
    stems = dict.fromkeys(row.stored.partition("N.")[0] for row in table if row.fills[0].startswith(_LAYER))
    extra_layers = tuple(stems) if kin.extra_layers else ()
    return Manifest(
        table=table,
        ignored=tuple(name for name in kin.ignored if name not in always_read),
        tied_head=tuple(heads),
        empty=tuple(name for name in kin.empty if name not in read),
        zero=tuple(row.stored for row in table if row.stored in kin.zero),
        optional_prefix=kin.optional_prefix,
        extra_layers=extra_layers,
        layers=len(architecture.layers),
    )


@dataclass(frozen=True, slots=True)
class _Holder:
    """What holds tensors: one of the layers that differ, or the model outside of its layers."""

    tensors: Mapping[str, Tensor]
    layer: Layer | None = None

    def shapes(self, row: TableRow) -> list[tuple[int, ...]]:
        """The shapes of what one stored tensor of a row fills."""
        shapes = [self.tensors[name].shape for name in row.fills]
        return [shape[1:] for shape in shapes] if _EXPERT in row.stored else shapes

    def groups(self, rule: Rule, row: TableRow) -> int:
        """How many groups the rows of a tensor stand in."""
        if rule.groups == "rows":
            return self.shapes(row)[0][row.axis]
        if rule.groups == "kv_heads":
            return self._kv_heads(row.fills[0].removeprefix(_LAYER).split(".")[0])
        return rule.groups or 1

    def _kv_heads(self, slot: str) -> int:
        assert self.layer is not None
        mixers = (mixer for branch in self.layer.branches for name, mixer in branch.mixers() if name == slot)
        shape = next(mixers).shape
        assert shape is not None
        return shape.kv_heads


def _holders(architecture: Architecture) -> Iterator[_Holder]:
    layers = [layer for layer, _ in architecture.distinct]
    yield from (_Holder({tensor.name: tensor for tensor in layer.tensors("layers.N")}, layer) for layer in layers)
    ends = (tensor for tensor in architecture.tensors() if not tensor.name.startswith(("layers.", "shared.")))
    yield _Holder({pattern_of(tensor.name): tensor for tensor in ends})


def _rows(kin: Family, rule: Rule, holders: Sequence[_Holder]) -> Iterator[TableRow]:
    """A rule of the family, narrowed to what the Architecture has."""
    for row in _spelled(rule):
        having = [holder for holder in holders if holder.tensors.keys() >= set(row.fills)]
        if isinstance(rule, Module) and rule.parallel is not None:
            having = [holder for holder in having if holder.layer and holder.layer.parallel == rule.parallel]
        if not having:
            continue
        counts = {holder.groups(rule, row) for holder in having} if len(row.fills) > 1 else {1}
        if len(counts) > 1:
            raise UnstorableError.of(kin, f"as many {rule.groups} in every layer, and not {sorted(counts)}")
        (groups,) = counts
        if any(shape[row.axis] % groups for holder in having for shape in holder.shapes(row) if groups > 1):
            raise UnstorableError.of(kin, f"{row.fills[0]} and others by turns, in {groups} equal groups")
        yield replace(row, groups=groups) if groups > 1 else replace(row, grouped_by=None)


def _lacks(holder: _Holder, row: TableRow) -> bool:
    """Whether this is one of several kinds of layers, and not one that has what a row fills."""
    return holder.layer is not None and _LAYER in row.fills[0] and row.fills[0] not in holder.tensors


def _spelled(rule: Rule) -> Iterator[TableRow]:
    """What a rule says of tensors by their full names; the number of groups is still open."""
    by = rule.groups if isinstance(rule.groups, str) else None
    if isinstance(rule, Module):
        for suffix in ("weight", "bias"):
            fills = tuple(f"{fill}.{suffix}" for fill in rule.fills)
            yield TableRow(f"{rule.stored}.{suffix}", fills, rule.transposed and suffix == "weight", grouped_by=by)
    else:
        axis = 1 if rule.stacked and len(rule.fills) > 1 else 0
        yield TableRow(
            rule.stored,
            rule.fills,
            rule.transposed,
            grouped_by=by,
            axis=axis,
            flat=rule.flat,
            unit_axis=rule.unit_axis,
        )


def _require_places(kin: Family, table: Sequence[TableRow], holders: Sequence[_Holder]) -> None:
    """Refuses a design with tensors that no row fills, or that share a stored tensor with others that it lacks."""
    homeless: set[str] = set()
    for holder in holders:
        found = holder.tensors.keys()
        rows = [row for row in table if row.fills[0] in found]
        homeless |= found - {fill for row in table for fill in row.fills if found >= set(row.fills)}
        homeless |= {row.fills[0] for row in rows if not found >= set(row.fills)}
    if homeless:
        raise UnstorableError.of(kin, f"no {min(homeless)}")


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
    shapes = [tensors[name].shape for name in names]
    stored = row.stored.replace(".N.", f".{layer}.")
    if _EXPERT in stored:
        shape = row.shape([shape[1:] for shape in shapes])
        for expert in range(shapes[0][0]):
            yield Entry(stored.replace(_EXPERT, f".{expert}."), shape, names, row, expert)
    else:
        yield Entry(stored, row.shape(shapes), names, row)
