"""Writing a generated module, and never over somebody's own work."""

from __future__ import annotations

import hashlib
from pathlib import Path

from archc.codegen.module import HASH_LINE
from archc.files import replace_own


def write_generated(text: str, path: Path, *, force: bool = False) -> None:
    """Writes generated source. An existing file is replaced only if archc wrote it and nobody changed it since.

    Raises UsageError where `path` holds something else (unless `force`), IncompleteError where it
    cannot be written; either way nothing has changed.
    """
    replace_own(path, text.encode(), _unchanged, force=force)


def _unchanged(content: bytes) -> bool:
    """Whether a file is archc's own, as its hash says. Line ends do not count: version control may convert them."""
    try:
        _, hash_line, body = content.decode().replace("\r\n", "\n").split("\n", 2)
    except ValueError:
        return False
    return hash_line == HASH_LINE + hashlib.sha256(body.encode()).hexdigest()
