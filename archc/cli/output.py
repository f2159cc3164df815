"""Where results go: standard output, or files that are written whole or not at all.

A file that exists is replaced only if archc wrote it and nobody changed it since. A JSON document says so itself, in
its last key: `generated` holds the version of archc and a hash of everything else. (Where a format has no room for keys
of its own, as SARIF, it is in the document's `properties`.)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

import click

from archc import __version__
from archc.cli.options import STDOUT
from archc.spec.diagnostics import Diagnostic, printable, render

MARK = "generated"

_PROSE_WIDTH = 80


def emit_json(document: Mapping[str, object], target: str, *, force: bool = False) -> None:
    """Write `document` as JSON, in UTF-8, to standard output (`-`) or to a file, which is replaced in one step.

    Raises UsageError when the file is not archc's own and `force` is not given, and IncompleteError when it cannot be
    written.
    """
    if target == STDOUT:
        click.echo(_text(document).encode(), nl=False)
        return
    _replace({**document, MARK: _mark(document)}, target, force)


def emit_sarif(log: Mapping[str, object], target: str, *, force: bool = False) -> None:
    """Write a SARIF log to a file, as `emit_json` does; the format has no room for keys but in `properties`."""
    _replace({**log, "properties": {MARK: _mark(log)}}, target, force)


def _replace(document: Mapping[str, object], target: str, force: bool) -> None:
    from archc.files import replace_own

    replace_own(Path(target), _text(document).encode(), is_own, force=force)


def _mark(document: Mapping[str, object]) -> dict[str, str]:
    return {"by": f"archc {__version__}", "sha256": _digest(document)}


def require_json_target(target: str | None, *, force: bool = False) -> None:
    """Refuse what `emit_json` would refuse, before the work that the document is about."""
    if target not in {None, STDOUT}:
        from archc.files import require_own

        require_own(Path(str(target)), is_own, force=force)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics to standard error, in colour where that is a terminal."""
    found = list(diagnostics)
    if found:
        click.echo(render(found, colour=wants_colour(sys.stderr)), err=True)


def print_notes(notes: Iterable[Diagnostic]) -> None:
    """Print notes to standard error, a line each: where, what, and what would be otherwise."""
    colour = wants_colour(sys.stderr)
    for note in notes:
        place = f"{note.span.file}:{note.span.line}:{note.span.column}" if note.span else note.path
        label = f"{note.level}[{note.code}]"
        label = click.style(label, fg="cyan", bold=True) if colour else label
        click.echo(f"{printable(place)}: {label}: {printable(f'{note.message}; {note.mend}')}", err=True)


def wants_colour(stream: IO[str]) -> bool:
    """Whether text on this stream may carry colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _text(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _digest(document: Mapping[str, object]) -> str:
    from hashlib import sha256

    return sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_own(content: bytes) -> bool:
    """Whether archc wrote this document and nobody changed it since."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    if not isinstance(document, dict):
        return False
    mark = document.pop(MARK, None)
    properties = document.get("properties")
    if isinstance(properties, dict) and properties.keys() == {MARK}:
        mark = document.pop("properties")[MARK]
    return isinstance(mark, dict) and mark.get("sha256") == _digest(document)


def wrapped(text: str, first: str, later: str | None = None) -> list[str]:
    """Lines of prose for a terminal, with the indent of the first and of later ones, by default the same."""
    import textwrap

    return textwrap.wrap(
        text,
        _PROSE_WIDTH,
        initial_indent=first,
        subsequent_indent=first if later is None else later,
        break_long_words=False,
        break_on_hyphens=False,
    )
