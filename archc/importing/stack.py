"""The kinds of layer of a model, and their pattern: `3*(5*sliding, full)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from archc.importing.translate import Leaf, Tree

_LONGEST = 200
"""Beyond so many runs the best pattern is not looked for: runs are written one after another."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The sections that most layers share, and what the other kinds state differently."""

    base: Tree
    kinds: dict[str, Tree]
    """Empty where all layers are equal."""
    pattern: str


def stack(layers: Sequence[Tree]) -> Stack:
    """Find the kinds among the sections of all layers."""
    distinct: list[Tree] = []
    numbers: list[int] = []
    for layer in layers:
        number = next((i for i, other in enumerate(distinct) if _same(layer, other)), len(distinct))
        if number == len(distinct):
            distinct.append(layer)
        numbers.append(number)
    base = distinct[Counter(numbers).most_common(1)[0][0]]
    if len(distinct) == 1:
        return Stack(base, {}, "")
    names = _names(distinct)
    kinds = {name: _difference(base, layer) for name, layer in zip(names, distinct, strict=True)}
    return Stack(base, kinds, pattern([names[number] for number in numbers]))


def pattern(kinds: Sequence[str]) -> str:
    """The shortest way to write a sequence of kinds as the language does."""
    runs: list[tuple[str, int]] = []
    for kind in kinds:
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + 1)
        else:
            runs.append((kind, 1))
    words = [kind if count == 1 else f"{count}*{kind}" for kind, count in runs]
    if len(words) > _LONGEST:
        return ", ".join(words)
    return _shortest(tuple(words))


@cache
def _shortest(words: tuple[str, ...]) -> str:
    """Greedy from the left: the repetition that saves most, then the rest."""
    best = (0, 0, 0, 0)  # characters saved, start, length, times
    for length in range(1, len(words) // 2 + 1):
        start = 0
        while start + 2 * length <= len(words):
            times = 1
            while words[start : start + length] == words[start + times * length : start + (times + 1) * length]:
                times += 1
            if times > 1:
                saved = (times - 1) * sum(len(word) + 2 for word in words[start : start + length]) - 4
                best = max(best, (saved, -start, -length, times))
            start += 1 if times == 1 else (times - 1) * length
    saved, start, length, times = best[0], -best[1], -best[2], best[3]
    if saved <= 0:
        return ", ".join(words)
    inner = _shortest(words[start : start + length])
    repeated = f"{times}*({inner})" if "," in inner or "*" in inner else f"{times}*{inner}"
    around = (words[:start], words[start + length * times :])
    before, after = (_shortest(part) if part else "" for part in around)
    return ", ".join(part for part in (before, repeated, after) if part)


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, Leaf) and one.same(other)


def _difference(base: Tree, layer: Tree) -> Tree:
    """What a kind has to state over `base` to become `layer`; null removes what only `base` has."""
    found: Tree = {}
    for key in base.keys() - layer.keys():
        found[key] = Leaf(None)
    for key, value in layer.items():
        known = base.get(key)
        if known is not None and _same(known, value):
            continue
        found[key] = _difference(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return {key: found[key] for key in (*(k for k in base if k in found), *(k for k in found if k not in base))}


def _names(kinds: Sequence[Tree]) -> list[str]:
    """A name for every kind, made of what sets it apart: sliding_moe, full_dense."""
    columns = [[axis(kind) for kind in kinds] for axis in (_mixer_word, _ffn_word, _position_word)]
    telling = [column for column in columns if len(set(column)) > 1]
    names = ["_".join(filter(None, (column[index] for column in telling))) or "layer" for index in range(len(kinds))]
    totals = Counter(names)
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if totals[name] > 1:
            seen[name] += 1
            names[index] = f"{name}_{seen[name]}"
    return names


def _mixer_word(kind: Tree) -> str:
    return "_".join(_mixer_words(kind))


def _mixer_words(kind: Tree) -> Iterator[str]:
    for branch in _branches(kind):
        yield from _words_of_branch(branch)


def _branches(kind: Tree) -> list[Tree]:
    """The branches of a kind: those of its block, each over the sections of the same names, or the kind as one."""
    block = kind.get("block")
    if not isinstance(block, list):
        return [kind]
    return [{name: _over(kind.get(name), section) for name, section in branch.items()} for branch in block]


def _over(base: Leaf | Tree | list[Tree] | None, section: Leaf | Tree | list[Tree]) -> Leaf | Tree | list[Tree]:
    return {**base, **section} if isinstance(base, dict) and isinstance(section, dict) else section


def _words_of_branch(branch: Tree) -> Iterator[str]:
    attention, mixer = branch.get("attention"), branch.get("mixer")
    if isinstance(attention, dict):
        if "window" in attention:
            yield "sliding"
        elif "chunk" in attention:
            yield "chunked"
        else:
            yield "full"
    if isinstance(mixer, dict):
        yield _value(mixer, "kind")


def _ffn_word(kind: Tree) -> str:
    found = [section for branch in _branches(kind) if isinstance(section := branch.get("ffn"), dict)]
    if not found:
        return ""
    return "moe" if any(_value(section, "kind") == "moe" for section in found) else "dense"


def _position_word(kind: Tree) -> str:
    position = kind.get("position")
    return "nope" if not isinstance(position, dict) or _value(position, "kind") == "none" else "rope"


def _value(section: Tree, key: str) -> str:
    leaf = section.get(key)
    return str(leaf.value) if isinstance(leaf, Leaf) else ""
