"""Folders that archc writes to, and weights that its validators name."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from archc import resources
from archc.checkpoints.cache import cache_folder
from archc.checkpoints.headers import read_checkpoint, read_config
from archc.errors import ArchcError, IncompleteError
from archc.validation.validator import find_validator, shipped_validators


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that archc writes to; it need not exist."""

    path: Path
    holds: str
    bytes: int
    writable: bool
    free_bytes: int | None
    """Room on its disk; None where that cannot be told."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The checkpoint of a shipped validator. `flaw` says what is wrong with it, and `mend` what gets it."""

    name: str
    folder: Path
    state: Literal["whole", "absent", "damaged"]
    bytes: int
    flaw: str
    mend: str


def cache_places() -> list[Place]:
    """archc's cache, by what it holds. Raises UsageError where there is no folder for one."""
    root = cache_folder()
    return [
        _place(root / "checkpoints", "weights that archc fetch got"),
        _place(root / "streams", "streamed validations that were interrupted"),
    ]


def weights() -> list[Weights]:
    """The checkpoints of all shipped validators, judged by their headers against the lengths of their files."""
    return [_weights(name) for name in shipped_validators()]


def missing_data() -> list[ArchcError]:
    """What keeps archc's own specs, templates, validators and pages from being found."""
    missing: list[ArchcError] = []
    for name in resources.FOLDERS:
        try:
            resources.folder(name)
        except IncompleteError as error:
            missing.append(error)
    return missing


def checkout() -> Path | None:
    """The root of the checkout that archc runs from; None where it was installed."""
    root = Path(resources.__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() else None


def _weights(name: str) -> Weights:
    validator = find_validator(name)
    folder = validator.weights
    assert folder is not None, "a shipped validator names its weights"
    fetched = validator.package is not None
    if fetched and not folder.exists():
        return Weights(name, folder, "absent", 0, "", f"archc fetch {name}")
    try:
        read_config(folder)
        read_checkpoint(folder)
    except IncompleteError as error:
        mend = f"delete {folder}, then `archc fetch {name}`" if fetched else "install archc again"
        return Weights(name, folder, "damaged", _size(folder), error.problem, mend)
    return Weights(name, folder, "whole", _size(folder), "", "")


def _place(path: Path, holds: str) -> Place:
    there = next((one for one in (path, *path.parents) if one.exists()), None)
    writable = there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    free: int | None = None
    if there is not None:
        try:
            free = shutil.disk_usage(there).free
        except OSError:
            free = None
    return Place(path, holds, _size(path), writable, free)


def _size(path: Path) -> int:
    """Bytes of all files below a folder; what cannot be read counts nothing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue
    return total
