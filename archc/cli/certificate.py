"""`archc certificate`: whether a certificate is as archc wrote it, and a folder holds the weights that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import Struct, field

from archc.cli.output import is_own
from archc.cli.reports import hash_checkpoint
from archc.errors import UsageError
from archc.spec.diagnostics import printable, quoted

HELP = """Hold a certificate, and the weights in a folder, against what archc validate wrote.

\b
Examples:
  archc certificate certificate.json
  archc certificate certificate.json --weights checkpoint/
"""
_MOST_BYTES: Final = 2**26


class _File(Struct):
    name: str
    sha256: str


class _Certificate(Struct):
    title: str
    passed: bool
    date: str
    verdict: str
    weights: list[_File] = field(default_factory=list)


@click.command("certificate", help=HELP)
@click.argument("file", metavar="FILE")
@click.option("--weights", metavar="DIR", help="A checkpoint folder, to be compared file by file.")
def command(file: str, weights: str | None) -> int:
    """Print what it says, and every difference; 0 if it certifies parity and nothing differs."""
    content = _content(Path(file))
    try:
        found = msgspec.json.decode(content, type=_Certificate)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UsageError(
            f"{quoted(file, 200)} is no certificate", "give one of `archc validate --certificate`"
        ) from None
    click.echo(printable(f"{found.title}, {found.date}: {found.verdict}"))
    wrong = [] if is_own(content) else ["it was changed since archc wrote it"]
    if weights is not None:
        wrong += _differences({one.name: one.sha256 for one in found.weights}, Path(weights))
        if not wrong:
            click.echo(f"{len(found.weights)} files are those that were validated")
    for line in wrong:
        click.echo(printable(line))
    return 0 if found.passed and not wrong else 1


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"cannot read {quoted(str(file), 200)}: {reason}", "give the path of a certificate") from None


def _differences(certified: dict[str, str], folder: Path) -> list[str]:
    """In which files a folder differs. Names in a certificate lead nowhere: the folder's own files are read."""
    stored = {one.name: one.sha256 for one in hash_checkpoint(folder)}
    lines = []
    for name in sorted(certified.keys() | stored.keys()):
        if name not in stored:
            lines.append(f"{name}: not in {folder}")
        elif name not in certified:
            lines.append(f"{name}: not in the certificate")
        elif stored[name] != certified[name]:
            lines.append(f"{name}: differs")
    return lines
