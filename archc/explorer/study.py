"""One spec with all that can be switched in it, and with unknown numbers in place of those that can be moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from archc.explorer.switches import AXES, DECLARED, SWITCHES, declared_choices, overrides
from archc.formulas.spec import plain, stated, unknown_header, unknown_part
from archc.parts.base import PartFields
from archc.spec.diagnostics import SpecError
from archc.spec.language import BranchFields, Header, LayerFields
from archc.spec.load import LoadedSpec, overridden

Value = TypeVar("Value")


class Table(Struct, frozen=True):
    """A value for every setting of some switches, those of the last axis next to each other."""

    axes: tuple[str, ...]
    values: tuple[Any, ...]


class Study:
    """A spec, and the same with every combination of options that its sections have."""

    def __init__(self, loaded: LoadedSpec) -> None:
        self.base = stated(loaded)
        self.plain = plain(self.base)
        self.choices = declared_choices(self.plain)
        self.options = {
            switch.id: (self.choices[switch.id], *(o for o in switch.options if o != self.choices[switch.id]))
            for switch in SWITCHES
            if switch.id in self.choices
        }
        self._parts: dict[tuple[Any, ...], PartFields] = {}
        self._settings = {
            section: {combination: self._set(section, axes, combination) for combination in self._combinations(axes)}
            for section, axes in AXES.items()
        }

    def axes(self, *sections: str) -> tuple[str, ...]:
        """The switches of some sections, as far as the spec has them."""
        found = dict.fromkeys(axis for section in sections for axis in AXES[section])
        return tuple(axis for axis in found if axis in self.options)

    def table(self, axes: Sequence[str], make: Callable[[Mapping[str, str]], Value]) -> Table:
        """What `make` makes of every combination of options; switches that make no difference are left out."""
        kept = tuple(axes)
        values = {c: make(dict(zip(kept, c, strict=True))) for c in product(*(self.options[axis] for axis in kept))}
        for axis in axes:
            index = kept.index(axis)
            first = self.options[axis][0]
            if all(value == values[(*c[:index], first, *c[index + 1 :])] for c, value in values.items()):
                values = {(*c[:index], *c[index + 1 :]): value for c, value in values.items() if c[index] == first}
                kept = (*kept[:index], *kept[index + 1 :])
        return Table(kept, tuple(values.values()))

    def section(self, name: str, choices: Mapping[str, str]) -> LoadedSpec | None:
        """The spec with the options that write into one section; None where they do not go together."""
        return self._settings[name][tuple(choices.get(axis, "") for axis in AXES[name])]

    def possible(self, choices: Mapping[str, str]) -> bool:
        """Whether all options go together."""
        return all(self.section(name, {**self._first(), **choices}) is not None for name in AXES)

    def header(self, choices: Mapping[str, str]) -> Header:
        """The header, with unknown numbers."""
        norm, ends = (self._chosen(name, choices).spec.header for name in ("norm", "embedding"))
        return replace(unknown_header(self.base.spec.header), norm=norm.norm, embedding=ends.embedding)

    def layer(self, kind: str, choices: Mapping[str, str]) -> LayerFields:
        """A kind of layer, with unknown numbers where it says what the sections of the spec say."""
        count = len(self.base.spec.kinds[kind].branches)
        return LayerFields(tuple(self._branch(kind, index, choices) for index in range(count)))

    def _branch(self, kind: str, index: int, choices: Mapping[str, str]) -> BranchFields:
        base = self.base.spec.kinds[kind].branches[index]
        norm, position = (self._chosen(name, choices).spec.kinds[kind].branches[index] for name in ("norm", "position"))
        parts = {name: self._part(kind, index, name, choices) for name in base.parts}
        return replace(base, parts=parts, norm=norm.norm, position=position.position)

    def _part(self, kind: str, index: int, name: str, choices: Mapping[str, str]) -> PartFields:
        chosen = {**self._first(), **choices}
        key = (kind, index, name, *(chosen.get(axis) for axis in AXES[name]))
        if key not in self._parts:
            self._parts[key] = unknown_part(self._chosen(name, choices), kind, index, name)
        return self._parts[key]

    def _chosen(self, name: str, choices: Mapping[str, str]) -> LoadedSpec:
        """As `section`; what does not go together is never shown, and stands as declared."""
        return self.section(name, {**self._first(), **choices}) or self.base

    def _first(self) -> dict[str, str]:
        return {axis: options[0] for axis, options in self.options.items()}

    def _combinations(self, axes: Sequence[str]) -> Iterator[tuple[str, ...]]:
        return product(*(self.options.get(axis, ("",)) for axis in axes))

    def _set(self, section: str, axes: Sequence[str], combination: Sequence[str]) -> LoadedSpec | None:
        chosen = {a: o for a, o in zip(axes, combination, strict=True) if o and o != self.choices[a] and o != DECLARED}
        changes = overrides(self.plain, section, chosen) if chosen else []
        if not changes:
            return self.base
        try:
            return overridden(self.base, changes)
        except SpecError:
            return None
