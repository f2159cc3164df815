"""What is wrong with a spec, said like a good compiler: where, what, and what would be right.

Everything shown comes from untrusted text, so `render` writes control characters, bidirectional marks and other
invisible characters as escapes: none of them reaches the terminal.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, structs

from archc.errors import ArchcError

EXCERPT_WIDTH = 200
ELLIPSIS = "…"
_BREAK = re.compile(r"\r\n|\r|\n")


class Level(StrEnum):
    """How much a diagnostic matters, worst first."""

    ERROR = "error"
    """It cannot be built."""
    WARNING = "warning"
    """It can be built, but is very likely a mistake."""
    NOTE = "note"
    """Design advice."""


class Span(Struct, frozen=True):
    """A stretch of one line of a file: what a caret line can point at."""

    file: str
    line: int
    """1-based."""
    column: int
    """1-based, in characters."""
    length: int
    """Characters that are underlined; whatever is asked for, at least 1 and no more than are left in the line."""
    text: str
    """The whole source line without its line break; empty when it is not known."""

    def __post_init__(self) -> None:
        structs.force_setattr(self, "length", max(1, min(self.length, len(self.text) - self.column + 1)))

    def excerpt(self) -> tuple[str, int]:
        """Return at most EXCERPT_WIDTH characters of the line around the column, and where in them the span starts.

        An ellipsis takes the place of the first or last character where the line was cut. The start counts from 0.
        """
        start = self.column - 1
        excess = len(self.text) - EXCERPT_WIDTH
        if excess <= 0:
            return self.text, start
        first = max(0, min(start - EXCERPT_WIDTH // 2, excess))
        text = self.text[first : first + EXCERPT_WIDTH]
        if first > 0:
            text = ELLIPSIS + text[1:]
        if first < excess:
            text = text[:-1] + ELLIPSIS
        return text, start - first


class Lines:
    """The lines of a text, to turn offsets (in characters, from 0) into spans.

    Only line feeds and carriage returns end a line, as in an editor; YAML also counts three rarer characters.
    """

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = _BREAK.split(text)
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def span(self, start: int, end: int) -> Span:
        """Return the span from `start` to before `end`, or to the end of its line when that comes first.

        A start on a line break, or at the end of the text, is moved to the last character of its line.
        """
        row = bisect_right(self._starts, start) - 1
        line = self._lines[row]
        column = max(0, min(start - self._starts[row], len(line) - 1))
        return Span(self._file, row + 1, column + 1, end - start, line)


class Diagnostic(Struct, frozen=True):
    """One thing to tell the author of a spec."""

    code: str
    """Stable and documented, such as E104: `archc explain E104`."""
    level: Level
    message: str
    """What is wrong."""
    mend: str
    """What would be right."""
    span: Span | None
    """Where; None when no text stands for it."""
    path: str = ""
    """The field in dotted form, such as layers.kinds.local."""

    def as_json(self) -> dict[str, object]:
        """Return it for machines; `file`, `line` and `column` are null without a span, and no text is escaped."""
        return {
            "code": self.code,
            "level": self.level.value,
            "message": self.message,
            "mend": self.mend,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "column": self.span.column if self.span else None,
            "path": self.path,
        }


class SpecError(ArchcError):
    """A spec that cannot be used, with all that is wrong with it (exit code 1); its text is what `render` returns."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render(self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        # Without this a worker process would hand it over as its rendered text.
        return type(self), (self.diagnostics,)


def printable(text: str) -> str:
    r"""Return the text with every character that a terminal might act on or hide as an escape (\x1b, \u202e)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(text: str, limit: int = 60) -> str:
    """Return text from a spec as a message shows it: printable, in quotes, and cut after `limit` characters."""
    return f"'{printable(text if len(text) <= limit else text[: limit - 1] + ELLIPSIS)}'"


def render(diagnostics: Iterable[Diagnostic], *, limit: int = 20, colour: bool = False) -> str:
    """Return diagnostics as text for a terminal, without a final line break.

    Errors come first, then warnings, then notes, each by file, line and column. Of several with the same code, place
    and message only one is shown, and after `limit` of them only how many more there are. `colour` adds ANSI codes.
    """
    distinct: dict[object, Diagnostic] = {}
    for diagnostic in diagnostics:
        distinct.setdefault((diagnostic.code, diagnostic.span, diagnostic.message), diagnostic)
    ordered = sorted(distinct.values(), key=_rank)
    blocks = [_block(diagnostic, colour) for diagnostic in ordered[:limit]]
    if len(ordered) > limit:
        blocks.append(f"… and {len(ordered) - limit} more")
    return "\n".join(blocks)


def _rank(diagnostic: Diagnostic) -> tuple[int, bool, str, int, int]:
    level = list(Level).index(diagnostic.level)
    span = diagnostic.span
    return (level, False, span.file, span.line, span.column) if span else (level, True, "", 0, 0)


def _block(diagnostic: Diagnostic, colour: bool) -> str:
    """Return one diagnostic: a headline, the line it is about with carets under it, and how to mend it."""
    tint = _TINTS[diagnostic.level] if colour else ""
    span = diagnostic.span
    place = f"{span.file}:{span.line}:{span.column}" if span else diagnostic.path
    label = _paint(f"{diagnostic.level}[{printable(diagnostic.code)}]", tint)
    headline = f"{label}: {printable(diagnostic.message)}"
    lines = [f"{_paint(f'{printable(place)}:', _BOLD if colour else '')} {headline}" if place else headline]
    if span and span.text:
        gutter = max(5, len(str(span.line)))
        text, start = span.excerpt()
        indent = " " * _width(printable(text[:start]))
        carets = "^" * max(1, _width(printable(text[start : start + span.length])))
        lines.append(f"{span.line:>{gutter}} | {printable(text)}")
        lines.append(f"{'':>{gutter}} | {indent}{_paint(carets, tint)}")
    if diagnostic.mend:
        lines.append(f"   = mend: {printable(_with_pointer(diagnostic))}")
    return "\n".join(lines)


def _with_pointer(diagnostic: Diagnostic) -> str:
    """Return the mend, with where to read the why; a mend that names a page of its own keeps it."""
    mend = diagnostic.mend
    if "archc explain" in mend:
        return mend
    return f"{mend}{'' if mend.endswith(('.', '?', '!')) else '.'} See `archc explain {diagnostic.code}`"


def _width(text: str) -> int:
    """Return the terminal columns of printable text: East Asian wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in {"W", "F"} else 1 for c in text
    )


_BOLD = "\x1b[1m"
_RESET = "\x1b[0m"
_TINTS = {Level.ERROR: "\x1b[1;31m", Level.WARNING: "\x1b[1;33m", Level.NOTE: "\x1b[1;36m"}


def _paint(text: str, tint: str) -> str:
    return f"{tint}{text}{_RESET}" if tint else text
