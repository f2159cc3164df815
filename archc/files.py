"""Writing files for a user: whole, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

from archc.errors import IncompleteError, UsageError
from archc.spec.diagnostics import quoted

_PNG_END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_MAX_OLD_BYTES = 2**28


def stamped(origin: str, body: str) -> str:
    """A text that says in its first line where it comes from, and in its second carries a hash of the rest.

    `#` begins a comment in the languages that archc writes.
    """
    return f"# {origin}\n# {_hash(body)}\n{body}"


def stamped_xml(body: str) -> str:
    """As `stamped`, for the body of an XML document, in UTF-8: the hash is in a comment of its second line."""
    return f"{_XML}\n<!-- {_hash(body)} -->\n{body}"


def stamped_html(body: str) -> str:
    """As `stamped`, for what follows an HTML document's type: the hash is in a comment of its second line."""
    return f"<!doctype html>\n<!-- {_hash(body)} -->\n{body}"


def stamped_png(image: bytes) -> bytes:
    """A PNG image with a hash of the rest in a text chunk, the last but one (https://www.w3.org/TR/png-3/#11textinfo)."""
    rest = image.removesuffix(_PNG_END)
    return rest + _png_mark(rest) + _PNG_END


def _png_mark(rest: bytes) -> bytes:
    text = b"tEXtarchc-sha256\0" + hashlib.sha256(rest).hexdigest().encode()
    return struct.pack(">I", len(text) - len(b"tEXt")) + text + struct.pack(">I", zlib.crc32(text))


def own_image(content: bytes) -> bool:
    """Whether archc wrote this SVG or PNG image and nobody changed it since."""
    rest = content[: -len(_png_mark(b"") + _PNG_END)]
    return _unchanged(content) or content == rest + _png_mark(rest) + _PNG_END


def write_stamped(text: str, path: Path, *, force: bool = False) -> None:
    """Write a stamped text. An existing file is replaced only if archc wrote it and nobody changed it since.

    Raises UsageError where `path` holds something else (unless `force`), IncompleteError where it
    cannot be written; either way nothing has changed.
    """
    replace_own(path, text.encode(), _unchanged, force=force)


def require_stamped(path: Path, *, force: bool = False) -> None:
    """Refuse what `write_stamped` would refuse, before the work that the text is about."""
    require_own(path, _unchanged, force=force)


def _hash(body: str) -> str:
    return f"archc-sha256: {hashlib.sha256(body.encode()).hexdigest()}"


def _unchanged(content: bytes) -> bool:
    """Whether a file is archc's own, as its hash says. Line ends do not count: version control may convert them."""
    try:
        _, hash_line, body = content.decode().replace("\r\n", "\n").split("\n", 2)
    except ValueError:
        return False
    return hash_line in {f"# {_hash(body)}", f"<!-- {_hash(body)} -->"}


def replace_own(path: Path, content: bytes, is_own: Callable[[bytes], bool], *, force: bool = False) -> None:
    """Write a file whole. One that exists is replaced only if archc wrote it and nobody changed it since.

    Raises what `require_own` does, and IncompleteError where it cannot be written; either way nothing has changed.
    """
    require_own(path, is_own, force=force)
    write_whole(path, content)


def require_own(path: Path, is_own: Callable[[bytes], bool], *, force: bool = False) -> None:
    """Refuse a file that may not be replaced, before the work that it is to hold.

    `is_own` says of a file's content whether archc wrote it. Raises what `require_own_file` does.
    """
    require_own_file(path, lambda file: _holds(file, is_own), force=force)


def require_own_file(path: Path, is_own: Callable[[Path], bool], *, force: bool = False) -> None:
    """Refuse a file that may not be replaced, as `require_own` does, where `is_own` looks into the file itself.

    Raises UsageError where it is somebody else's (unless `force`) or a folder, and IncompleteError where there is no
    folder to write it in.
    """
    try:
        if path.is_dir():
            raise UsageError(f"{quoted(str(path), 200)} is a folder", "name a file")
        if path.is_file() and not force and not is_own(path):
            raise UsageError(
                f"{quoted(str(path), 200)} exists, and archc did not write it or it was changed since",
                "choose another name, or add --force",
            )
        folder = path.resolve().parent
        if not folder.is_dir():
            _refuse(path, os.strerror(errno.ENOTDIR if folder.exists() else errno.ENOENT))
        if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
            _refuse(path, os.strerror(errno.EACCES))
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a NUL in it, links in a circle
        _refuse(path, (isinstance(error, OSError) and error.strerror) or str(error))


def _refuse(path: Path, reason: str) -> NoReturn:
    raise IncompleteError(
        f"cannot write {quoted(str(path), 200)}: {reason}", "choose a place that exists and that you may write to"
    ) from None


def _holds(path: Path, is_own: Callable[[bytes], bool]) -> bool:
    try:
        return path.stat().st_size <= _MAX_OLD_BYTES and is_own(path.read_bytes())
    except OSError:
        return False


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, as `whole_file` does."""
    with whole_file(path) as stream:
        stream.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A stream into a file that is either as it was before, or complete. Raises IncompleteError when it cannot be.

    What is no regular file (a pipe, /dev/stdout) is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
            return
        real = path.resolve()  # a link keeps leading to the file
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{real.name[:40]}.", dir=real.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(mode)
            Path(name).replace(real)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        _refuse(path, (isinstance(error, OSError) and error.strerror) or str(error))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
