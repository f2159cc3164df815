"""Where archc's own data lies: specs, templates, validators, pages on diagnostic codes, and what was measured.

In a checkout they are folders at the root of the repository, where people read and edit them; a wheel carries
copies inside the package. Nothing else in archc needs to know which of the two it runs from.
"""

from pathlib import Path
from typing import Literal, get_args

from archc.errors import IncompleteError

_PACKAGE = Path(__file__).resolve().parent

FolderName = Literal["specs", "templates", "validators", "codes", "measured"]
FOLDERS: tuple[FolderName, ...] = get_args(FolderName)
"""Every folder of data that archc needs."""

# Name of a folder → its place below the repository's root.
_IN_CHECKOUT = {
    "specs": Path("specs"),
    "templates": Path("templates"),
    "validators": Path("validators"),
    "codes": Path("docs", "codes"),
    "measured": Path("measured"),
}


def folder(name: FolderName) -> Path:
    """Return the folder of that name: the installed copy if there is one, else the repository's own."""
    installed = _PACKAGE / "_data" / name
    checkout = _PACKAGE.parent / _IN_CHECKOUT[name]
    for path in (installed, checkout):
        if path.is_dir():
            return path
    raise IncompleteError(f"archc's own {name} are neither in {installed} nor in {checkout}", "install archc again")
