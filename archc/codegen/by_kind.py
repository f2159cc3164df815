"""Statements of a generated module that ask for the kind of a layer, the variable `kind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archc.codegen.naming import LINE, literal, words


def chosen(indent: int, name: str, values: Mapping[str, str]) -> str:
    """`name = a if kind == "x" else b`; a table where kinds have more than two values, no question where they agree."""
    kinds_of: dict[str, list[str]] = {}
    for kind, value in values.items():
        kinds_of.setdefault(value, []).append(kind)
    if len(kinds_of) == 1:
        return f"{name} = {next(iter(kinds_of))}"
    if len(kinds_of) > 2:
        rows = "".join(f"{' ' * (indent + 4)}{literal(kind)}: {value},\n" for kind, value in values.items())
        return f"{name} = {{\n{rows}{' ' * indent}}}[kind]"
    (one, ours), (other, theirs) = sorted(kinds_of.items(), key=lambda each: len(each[1]))
    if len(ours) > 1 and not _word(ours, theirs) and _word(theirs, ours):
        one, ours, other, theirs = other, theirs, one, ours
    parts = (one, f"if {_is_one_of(ours, theirs)}", f"else {other}")
    line = " ".join(parts)
    if indent + len(f"{name} = {line}") <= LINE:
        return f"{name} = {line}"
    inner = " " * (indent + 4)
    if len(inner) + len(line) > LINE:
        line = f"\n{inner}".join(parts)
    return f"{name} = (\n{inner}{line}\n{' ' * indent})"


def _is_one_of(kinds: Sequence[str], others: Sequence[str]) -> str:
    if len(kinds) == 1:
        return f"kind == {literal(kinds[0])}"
    if word := _word(kinds, others):
        return f"{literal(word)} in kind"
    return f"kind in ({', '.join(map(literal, kinds))})"


def _word(kinds: Sequence[str], others: Sequence[str]) -> str | None:
    """A word that the names of all these kinds hold, and those of no others."""
    found = (word for word in words(kinds[0]) if all(word in kind for kind in kinds))
    return next((word for word in found if not any(word in kind for kind in others)), None)
