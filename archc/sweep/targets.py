"""What a sweep is over: the checkpoints below a folder, or the lines of a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from archc.checkpoints.headers import INDEX
from archc.errors import UsageError
from archc.spec.diagnostics import quoted

_Item = TypeVar("_Item")

_CONFIG: Final = "config.json"
_MOST_BYTES: Final = 2**24


@dataclass(frozen=True, slots=True)
class Target:
    """The words that would follow `archc validate`, and where they come from, for messages about them."""

    words: tuple[str, ...]
    origin: str


def targets_of(source: str) -> tuple[list[Target], list[str]]:
    """What is to be validated: the checkpoints below a folder, by path, or the lines of a list, in their order.

    Also says which folders were left out, and why. Raises UsageError where `source` is neither, or holds nothing.
    """
    path = Path(source)
    try:
        if path.is_dir():
            targets, left_out = _checkpoints(path)
        else:
            targets, left_out = _lines(path), []
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"cannot read {quoted(source, 200)}: {reason}", "name a folder or a list") from None
    if not targets:
        raise UsageError(
            f"nothing to validate in {quoted(source, 200)}",
            "a checkpoint is a folder with config.json and safetensors files; a list names one in each line",
        )
    return targets, left_out


def shard(items: Sequence[_Item], number: int, of: int) -> Sequence[_Item]:
    """Every `of`-th item, from the `number`-th on: the shards 1 to `of` have every item exactly once."""
    return items[number - 1 :: of]


def _checkpoints(top: Path) -> tuple[list[Target], list[str]]:
    found: list[Target] = []
    left_out: list[str] = []
    for folder, names in _folders(top):
        if _CONFIG not in names:
            continue
        text = str(folder)
        if not text.isprintable():
            left_out.append(f"{text!a}: its name cannot be printed")
        elif not any(name.endswith(".safetensors") or name == INDEX for name in names):
            left_out.append(f"{text}: config.json, and no safetensors files")
        else:
            found.append(Target((f"./{text}" if text.startswith("-") else text,), text))
    return found, left_out


def _folders(top: Path) -> Iterator[tuple[Path, set[str]]]:
    """Folders from `top` on, by path, with the names in them. Links are followed, and no folder comes twice."""
    seen: set[str] = set()
    pending = [top]
    while pending:
        folder = pending.pop()
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
        pending += [folder / entry.name for entry in entries if entry.is_dir()]
        yield folder, {entry.name for entry in entries if not entry.is_dir()}


def _lines(file: Path) -> list[Target]:
    """A list: in each line what would follow `archc validate`, quoted as for a shell; `#` begins a comment."""
    with file.open("rb") as stream:
        raw = stream.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError("it is too long for a list")
    targets: list[Target] = []
    for number, line in enumerate(raw.decode().splitlines(), 1):
        try:
            words = tuple(shlex.split(line, comments=True))
        except ValueError as error:
            raise UsageError(f"{file}:{number}: {error}", "quote as for a shell") from None
        if words:
            targets.append(Target(words, f"{file}:{number}"))
    return targets
