"""Writing a generated module, and never over somebody's own work."""

from __future__ import annotations

import hashlib
from pathlib import Path

from archc.codegen.module import HASH_LINE
from archc.errors import UsageError
from archc.files import write_whole


def write_generated(text: str, path: Path, *, force: bool = False) -> None:
    """Writes generated source. An existing file is replaced only if archc wrote it and nobody changed it since.

    Raises UsageError where `path` holds something else (unless `force`), IncompleteError where it
    cannot be written; either way nothing has changed.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "name a file")
    if path.exists() and not force and not _unchanged(path):
        raise UsageError(f"{path} exists and is not an unchanged file of archc's", "choose another name, or --force")
    write_whole(path, text.encode())


def _unchanged(path: Path) -> bool:
    """Whether the file is archc's own, as its hash says. Line ends do not count: version control may convert them."""
    try:
        _, hash_line, body = path.read_text(encoding="utf-8").split("\n", 2)
    except (OSError, UnicodeDecodeError, ValueError):
        return False
    return hash_line == HASH_LINE + hashlib.sha256(body.encode()).hexdigest()
