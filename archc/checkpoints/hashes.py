"""Hashes of the files that a checkpoint is read from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archc.checkpoints.headers import INDEX, read_checkpoint
from archc.errors import IncompleteError

_BESIDES: Final = ("config.json", "generation_config.json", INDEX, "tokenizer.json")
_AT_ONCE: Final = 2**22


@dataclass(frozen=True, slots=True)
class FileHash:
    """A file by its name in the checkpoint folder, its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of a checkpoint that a run of the gate reads: every one that holds tensors, and those beside them.

    Raises IncompleteError where the folder holds no checkpoint.
    """
    besides = [folder / name for name in _BESIDES if (folder / name).is_file()]
    return besides + sorted({tensor.file for tensor in read_checkpoint(folder).values()})


def hash_files(files: Iterable[Path], advance: Callable[[int], None] = lambda _: None) -> list[FileHash]:
    """The hashes of files, a few megabytes at a time; `advance` is told how many bytes were read.

    Raises IncompleteError where one cannot be read.
    """
    return [_hash(file, advance) for file in files]


def _hash(file: Path, advance: Callable[[int], None]) -> FileHash:
    digest, size = hashlib.sha256(), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(_AT_ONCE):
                digest.update(piece)
                size += len(piece)
                advance(len(piece))
    except OSError as error:
        raise IncompleteError(f"{file} cannot be read: {error.strerror or error}", "check that it is there") from None
    return FileHash(file.name, size, digest.hexdigest())
