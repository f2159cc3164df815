"""What a console block shows against what its commands print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

NEAR = 10
"""A figure that hangs on noise is near another one if they are within this factor …"""
PASSES = 8.0
"""… or if both are multiples of the noise floor that pass."""

VERSIONS = (
    (re.compile(r"\b(transformers|torch|archc|Python) \d+\.\d+\.\d+\S*(?<![,.])"), r"\1 VERSION"),
    (re.compile(r"\b\d+(\.\d+)? (s|seconds?)\b"), "SECONDS"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"  +"), "  "),  # columns are as wide as what stands in them
)
"""What may differ and does not matter."""
NOISE = re.compile(
    r"\d\.\de[+-]\d\d"  # floors and deviations
    r"|(?<![\w.,])[\d,]+(?:\.\d+)?(?=  +(?:pass|FAIL|seen|none|no mistake)\b| times)"  # multiples of a floor
)
"""What differs from machine to machine, and is compared as a figure."""

PROGRESS = re.compile(r"\d+%\|.*\|")
"""Bars that libraries draw while they load, and that say nothing once they have."""

_ANY = "…"


@dataclass(frozen=True)
class Step:
    """A command, and what the block shows of its output; None where the block shows no output of any."""

    command: str
    shown: tuple[str, ...] | None


def steps(text: str) -> list[Step]:
    """The commands of a console block. A command goes on in the next line behind a backslash."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            raise ValueError("a console block begins with a command: $ …")
        elif found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        else:
            found[-1][1].append(line)
    silent = not any(shown for _, shown in found)
    return [Step(command, None if silent else tuple(shown)) for command, shown in found]


def difference(shown: tuple[str, ...], printed: str, *, some: bool = False) -> str | None:
    """What is wrong with the shown lines; None where they are right.

    A line that is … stands for any lines, and one at the end of a line for any rest of it.
    """
    expected, actual = _lines(shown), _lines(printed.splitlines())
    position = 0
    skipping = some
    for line in expected:
        if line.strip() == _ANY:
            skipping = True
            continue
        candidates = actual[position:] if skipping else actual[position : position + 1]
        passed_over = sum(1 for _ in takewhile(lambda one, line=line: not _same(line, one), candidates))  # type: ignore[misc]
        if passed_over == len(candidates):
            there = actual[position] if position < len(actual) and not skipping else "nothing like it"
            return f"shown:   {line}\nprinted: {there}"
        position += passed_over + 1
        skipping = some
    if position < len(actual) and not skipping:
        return f"printed, and not shown: {actual[position]}"
    return None


def _lines(lines: tuple[str, ...] | list[str]) -> list[str]:
    kept = [line.rstrip() for line in lines if not PROGRESS.search(line)]
    while kept and not kept[-1]:
        kept.pop()
    while kept and not kept[0]:
        kept.pop(0)
    return kept


def _same(shown: str, printed: str) -> bool:
    for pattern, word in VERSIONS:
        shown, printed = pattern.sub(word, shown), pattern.sub(word, printed)
    if shown.endswith(_ANY) and not printed.endswith(_ANY):
        shown = shown.removesuffix(_ANY)
        return printed.startswith(shown)
    if NOISE.sub("#", shown) != NOISE.sub("#", printed):
        return False
    return all(map(_near, NOISE.findall(shown), NOISE.findall(printed)))


def _near(shown: str, printed: str) -> bool:
    one, other = (float(text.replace(",", "")) for text in (shown, printed))
    if "e" not in shown and max(one, other) <= PASSES:
        return True
    return max(one, other) <= NEAR * min(one, other)
