"""Names and literals of generated code. Nothing from a spec reaches the code but through here."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

LINE = 88
LONGEST_CONSTANT_PREFIX = 12
LONGEST_CLASS_PREFIX = 40
_LONGEST_LABEL = 40
_TAKEN = {"query", "layer"}
"""Words that names begin with which end like others: QUERY_EXPERTS beside EXPERTS, layer_inputs."""
T = TypeVar("T", bound=Hashable)


def literal(value: object) -> str:
    """A Python literal as a formatter would leave it: 49_152, 100_000.0, 1e-05, "text"."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        plain = value.is_integer() and 10_000 <= abs(value) < 1e15
        return f"{value:_.1f}" if plain else repr(value).replace("e+", "e")
    if isinstance(value, str):
        return '"' + value.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
    raise TypeError(f"no literal for {type(value).__name__}")


def quoted(names: Sequence[str]) -> str:
    """A tuple of names, as strings."""
    return f"({', '.join(map(literal, names))}{',' if len(names) == 1 else ''})"


def fitted(indent: int, head: str, items: Sequence[str], tail: str = "") -> str:
    """`head(items)tail` on one line where it fits in 88 columns; else the items on a line of their own, or one each.

    All forms are what a formatter leaves as they are. The longest ends in a comma; a tuple, with no name before its
    bracket, has no middle form.
    """
    tuples = not head or head.endswith((": ", "= "))
    listed = ", ".join(items) + ("," if tuples and len(items) == 1 else "")
    line = f"{head}({listed}){tail}"
    if indent + len(line) <= LINE and "\n" not in line:
        return line
    if not tuples and indent + 4 + len(listed) <= LINE and "\n" not in listed:
        return f"{head}(\n{' ' * (indent + 4)}{listed}\n{' ' * indent}){tail}"
    inner = "".join(f"{' ' * (indent + 4)}{item},\n" for item in items)
    return f"{head}(\n{inner}{' ' * indent}){tail}"


def braced(head: str, items: Sequence[str]) -> str:
    """`head{items}`, a set at the top of a module, on one line where it fits."""
    line = f"{head}{{{', '.join(items)}}}"
    if len(line) <= LINE:
        return line
    return f"{head}{{\n" + "".join(f"    {item},\n" for item in items) + "}"


def words(kind: str) -> list[str]:
    """The words in a kind of layer's name: `chunked+moe` gives chunked, moe."""
    return [word for word in re.split(r"[^a-z0-9]+", kind) if word]


def labels(kinds: Iterable[str]) -> Mapping[str, str]:
    """What the code calls each kind of layer: its own name, or kind1, kind2, … where names are unwieldy."""
    distinct = list(dict.fromkeys(kinds))
    if all(re.fullmatch(r"[a-z][a-z0-9_+]*", kind) and len(kind) <= _LONGEST_LABEL for kind in distinct):
        return {kind: kind for kind in distinct}
    return {kind: f"kind{number}" for number, kind in enumerate(distinct, 1)}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of classes and constants of one form of a part: `names.HEADS` is HEADS, or LOCAL_HEADS.

    They have the prefix, where there is one, but for constants that are `shared` with the other forms, and for classes
    of which there is `one` alone. `first` begins all constants, after the prefix. `variables` stand in for some.
    """

    prefix: str = ""
    shared: frozenset[str] = frozenset()
    one: bool = False
    first: str = ""
    variables: tuple[tuple[str, str], ...] = ()

    def __getattr__(self, constant: str) -> str:
        """The name of a constant."""
        if not constant.isupper():
            raise AttributeError(constant)
        name = self.first + constant
        for replaced, variable in self.variables:
            if name == replaced:
                return variable
        return name if not self.prefix or name in self.shared else f"{self.prefix.upper()}_{name}"

    def with_variables(self, variables: Mapping[str, str]) -> Names:
        """Names where some constants, named without a prefix, are variables."""
        return replace(self, variables=tuple(variables.items()))

    def class_(self, stem: str) -> str:
        """The name of a class."""
        return stem if self.one else _camel(self.prefix) + stem

    def below(self, first: str) -> Names:
        """Names of constants that begin with more."""
        return replace(self, first=self.first + first)


@dataclass(frozen=True, slots=True)
class Variant(Generic[T]):
    """One of several forms that a thing takes in a model, and the kinds of layer that have it.

    `prefix` is empty when there is only one form: Attention, HEADS. Else it comes from the names
    of the kinds: LocalAttention, LOCAL_HEADS.
    """

    value: T
    kinds: tuple[str, ...]
    prefix: str

    @property
    def function_prefix(self) -> str:
        """For functions and variables: `local_`."""
        return f"{self.prefix}_" if self.prefix else ""

    @property
    def class_prefix(self) -> str:
        """For classes: `Local`."""
        return _camel(self.prefix)


def variants(pairs: Iterable[tuple[str, T]], longest: int = LONGEST_CONSTANT_PREFIX) -> list[Variant[T]]:
    """Groups (kind, value) pairs by value, in order of first use, and names the groups."""
    kinds_of: dict[T, list[str]] = {}
    for kind, value in pairs:
        kinds = kinds_of.setdefault(value, [])
        if kind not in kinds:
            kinds.append(kind)
    groups = list(kinds_of.values())
    names = [""] if len(groups) == 1 else [_name(group, groups) for group in groups]
    if len(groups) > 1 and not _serve(names, longest):
        names = [f"kind{number}" for number in range(1, len(names) + 1)]
    return [Variant(value, tuple(kinds), name) for (value, kinds), name in zip(kinds_of.items(), names, strict=True)]


def _name(group: Sequence[str], groups: Iterable[Sequence[str]]) -> str:
    """A word that all kinds of the group have and no other kind has; else the name of its first kind."""
    others = {word for other in groups if other is not group for kind in other for word in words(kind)}
    for word in words(group[0]):
        if word not in others and word.isidentifier() and all(word in words(kind) for kind in group):
            return word
    return "_".join(words(group[0]))


def _serve(names: Sequence[str], longest: int) -> bool:
    """Whether names can be prefixes: short, no two alike as classes, none that begins another.

    X_ before KV_HEADS and X_KV_ before HEADS would be the same constant.
    """
    if not all(name.isidentifier() and len(name) <= longest for name in names):
        return False
    if len({_camel(name) for name in names}) < len(names) or _TAKEN & set(names):
        return False
    return not any(longer.startswith(f"{name}_") for name in names for longer in names)


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
