"""Where archc keeps what it has fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path

from archc.errors import UsageError

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


def cache_folder() -> Path:
    """The folder for everything archc may delete and fetch again; it need not exist yet.

    ``$ARCHC_CACHE``, else ``$XDG_CACHE_HOME/archc``, else ``~/.cache/archc``. As the XDG base directory
    specification asks, an empty variable counts as unset and a relative ``$XDG_CACHE_HOME`` is ignored.

    Raises:
        UsageError: neither variable is set and the user has no home folder.
    """
    if own := os.environ.get("ARCHC_CACHE"):
        return Path(own).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "archc"
    try:
        return Path.home() / ".cache" / "archc"
    except RuntimeError:
        raise UsageError("no home folder to keep a cache in", "set ARCHC_CACHE to a folder") from None


def checkpoint_folder(name: str) -> Path:
    """The folder of the fetched checkpoint ``name``, inside the cache; it need not exist yet.

    Raises:
        UsageError: ``name`` is not made of lower-case letters, digits, dots and dashes, or does not start
            with a letter or digit (so it can never climb out of the cache).
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a checkpoint in the cache",
            "use lower-case letters, digits, dots and dashes, starting with a letter or digit",
        )
    return cache_folder() / "checkpoints" / name
