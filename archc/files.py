"""Writing files for a user: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from archc.errors import IncompleteError
from archc.spec.diagnostics import quoted


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
