"""What a generated model works out once and hands to its layers: rotary tables, visible keys.

An input is one value where all layers agree, else a table by the kind of layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from archc.codegen.naming import Variant, fitted, literal
from archc.codegen.rotation import RopeView


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of blocks and mixers. `values` is its expression for every kind of layer, None where it has none."""

    name: str
    annotation: str
    values: Mapping[str, str | None]

    @property
    def by_kind(self) -> bool:
        """Whether it differs between kinds of layers."""
        return len(set(self.values.values())) > 1

    @property
    def table(self) -> str:
        """The variable that holds its values by kind."""
        return f"{self.name.split('_')[0]}_by_kind"

    @property
    def argument(self) -> str:
        """What the loop over layers hands to a block."""
        return f"{self.table}[kind]" if self.by_kind else self.name

    @property
    def statement(self) -> str | None:
        """What changes it for all layers, where they agree and it is not what the variable of its name holds."""
        value = next(iter(self.values.values()))
        return None if self.by_kind or value == self.name else f"{self.name} = {value}"

    @property
    def optional(self) -> bool:
        """Whether some layers have none."""
        return None in self.values.values()

    @property
    def parameter(self) -> str:
        """The parameter of a block."""
        return f"{self.name}: {self.annotation}" + (" | None" if self.optional else "")

    @property
    def rows(self) -> Iterator[str]:
        """The lines of the table by kind."""
        for kind, value in self.values.items():
            head, _, arguments = (value or "None").partition("(")
            if arguments:
                yield fitted(12, f"{literal(kind)}: {head}", [arguments.removesuffix(")")], ",")
            else:
                yield f"{literal(kind)}: {head},"


def rotation_input(ropes: Sequence[RopeView], kinds: Sequence[str]) -> Input | None:
    """The rotary tables, where some layers turn their heads."""
    if not ropes:
        return None
    found = {kind: rope.variable for rope in ropes for kind in rope.kinds}
    return Input("rotation", "tuple[Tensor, Tensor]", {kind: found.get(kind) for kind in kinds})


def visible_input(windows: Sequence[Variant[int | None]], kinds: Sequence[str]) -> Input:
    """Which keys a query sees."""
    found = {kind: _seen(variant) for variant in windows for kind in variant.kinds}
    return Input("visible_BTS", "Tensor", {kind: found[kind] for kind in kinds})


def _seen(variant: Variant[int | None]) -> str:
    if variant.value is None:
        return "visible_BTS"
    return f"visible_BTS.triu(past - {variant.constant_prefix}WINDOW + 1)"
