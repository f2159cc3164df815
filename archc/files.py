"""Writing files for a user: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from archc.errors import IncompleteError, UsageError
from archc.spec.diagnostics import quoted

_MAX_OLD_BYTES = 2**28


def replace_own(path: Path, content: bytes, is_own: Callable[[bytes], bool], *, force: bool = False) -> None:
    """Write a file whole. One that exists is replaced only if archc wrote it and nobody changed it since.

    `is_own` says so of the old content. Raises UsageError where it is somebody else's (unless `force`), and
    IncompleteError where it cannot be written; either way nothing has changed.
    """
    if path.is_dir():
        raise UsageError(f"{quoted(str(path), 200)} is a folder", "name a file")
    if path.is_file() and not force and not _holds(path, is_own):
        raise UsageError(
            f"{quoted(str(path), 200)} exists, and archc did not write it or it was changed since",
            "choose another name, or add --force",
        )
    write_whole(path, content)


def _holds(path: Path, is_own: Callable[[bytes], bool]) -> bool:
    try:
        return path.stat().st_size <= _MAX_OLD_BYTES and is_own(path.read_bytes())
    except OSError:
        return False


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: it is either as it was before, or complete. Raises IncompleteError when it cannot be.

    What is no regular file (a pipe, /dev/stdout) is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        real = path.resolve()  # a link keeps leading to the file
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{real.name[:40]}.", dir=real.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(mode)
            Path(name).replace(real)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise IncompleteError(
            f"cannot write {quoted(str(path), 200)}: {reason}", "choose a place that exists and that you may write to"
        ) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
