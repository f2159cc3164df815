"""Writing files for a user: atomically, and never over somebody's own work."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from archc.codegen.module import HASH_LINE
from archc.errors import IncompleteError, UsageError


def write_generated(text: str, path: Path, *, force: bool = False) -> None:
    """Writes generated source. An existing file is replaced only if archc wrote it and nobody changed it since.

    Raises UsageError where `path` holds something else (unless `force`), IncompleteError where it
    cannot be written; either way nothing has changed.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "name a file")
    if path.exists() and not force and not _unchanged(path):
        raise UsageError(f"{path} exists and is not an unchanged file of archc's", "choose another name, or --force")
    write_atomically(text, path)


def write_atomically(text: str, path: Path) -> None:
    """Replaces `path` with `text` in one step. Raises IncompleteError, leaving nothing half-written."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise
    except OSError as error:
        raise IncompleteError(f"cannot write {path}: {error.strerror}", "choose a place that can be written") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unchanged(path: Path) -> bool:
    """Whether the file is archc's own, as its hash says. Line ends do not count: version control may convert them."""
    try:
        _, hash_line, body = path.read_text(encoding="utf-8").split("\n", 2)
    except (OSError, UnicodeDecodeError, ValueError):
        return False
    return hash_line == HASH_LINE + hashlib.sha256(body.encode()).hexdigest()
