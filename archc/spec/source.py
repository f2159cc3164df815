"""From YAML text to a tree of nodes that remember where they came from.

A spec is untrusted. PyYAML is used up to its events and no further, so no Python object can come out of a spec, an
alias is refused before anything could be expanded, and nesting is refused before anything could recurse. Plain scalars
are read here, by the core schema of YAML 1.2: PyYAML follows 1.1, where 1e-6 is a string and `no` is false.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import yaml
from msgspec import Struct, field

from archc.errors import UsageError
from archc.spec.diagnostics import Diagnostic, Level, Lines, Span, SpecError, quoted

Scalar: TypeAlias = bool | int | float | str | None

MAX_BYTES = 2**20
MAX_DEPTH = 40

# libyaml is many times faster, but not part of every installation. The pure parser refuses some tabs that it allows.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TABBED = re.compile(r"^ *(\t)", re.MULTILINE)

_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_DECIMAL = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_ZERO = re.compile(r"[-+.0]*[1-9]")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_TOO_LARGE = ("E003", "the file is larger than 1 MiB", "give a spec: a few kilobytes of text")
_TOO_DEEP = ("E003", f"more than {MAX_DEPTH} levels of nesting", "flatten it: no spec needs ten")
_TAG = ("E004", "this tag is not allowed", "leave it out, and put in quotes what is to be text")
_ANCHOR = ("E005", "anchors, aliases and merge keys are not allowed", "write the value out wherever it is used")
_TAB = ("E001", "tabs cannot indent YAML", "use spaces here")
# What a parser says of a syntax error (libyaml and the pure one differ in their words), and what archc says instead.
_SYNTAX = (
    (r"nesting depth", _TOO_DEEP),
    (r"\ba tag\b|tag handle", _TAG),
    (r"an anchor|an alias", _ANCHOR),
    (r"scalar: found unexpected", ("E001", "this quote is never closed", "add the closing quote")),
    (r"escape|decimal num", ("E001", "this escape is not known", r"write \\ for a backslash, or use single quotes")),
    (r"expected ':'", ("E001", "a ':' is missing after this key", "write `key: value`")),
    (r"mapping values", ("E001", "a ':' cannot stand here", "check the indentation, or quote the whole text")),
    (r"entries are", ("E001", "a '-' cannot stand here", "start the list on the next line, or quote the text")),
    (r"',' or", ("E001", "a comma or closing bracket is missing", "close every [ and {, and put commas between")),
    (r"document start", ("E001", "this does not belong to the lines above", "check its indentation and brackets")),
    (r"block (map|coll|seq)", ("E001", "this does not fit the lines above", "check its indentation and quotes")),
    (r"node content", ("E001", "a value is missing here", "write null for no value, or quote the text")),
    (r"start any token", ("E001", "a text cannot start with this character", "put the text in quotes")),
    ("", ("E001", "this is not valid YAML", "check the lines around it")),
)
_TAGGED = re.compile(r"!\S*")
_STARTS_EARLIER = re.compile(r"scalar: found unexpected|expected ':'")


class Node(Struct, frozen=True):
    """A value of a spec and where it was written."""

    value: Scalar | tuple[Node, ...] | Mapping[str, Node]
    span: Span
    """The value; its first line where it has several, and its key where a value was left out."""
    key_span: Span | None = None
    """Its key, for a value in a mapping."""

    def plain(self) -> object:
        """Return the value as nested dicts, lists and scalars, all newly made."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value

    def find(self, path: Sequence[str | int]) -> Node:
        """Return the deepest node along a path of keys and list indices (from 0), up to the first step not there."""
        node = self
        for step in path:
            if isinstance(node.value, Mapping) and str(step) in node.value:
                node = node.value[str(step)]
            elif isinstance(node.value, tuple) and isinstance(step, int) and 0 <= step < len(node.value):
                node = node.value[step]
            else:
                break
        return node


def entries(node: Node | None) -> Mapping[str, Node]:
    """The nodes in a mapping, by key; none in any other value, or where there is no node."""
    return node.value if node is not None and isinstance(node.value, Mapping) else {}


def read(path: Path) -> Node:
    """Read and parse a file; of no kind of file is more than 1 MiB ever read.

    Raises SpecError for what the file holds, and UsageError when there is none or it may not be read.
    """
    file = str(path)
    try:
        if path.is_dir():
            _refuse(Span(file, 1, 1, 1, ""), "E002", "this is a folder", "give the path of a file in it")
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            too_large = stat.S_ISREG(status.st_mode) and status.st_size > MAX_BYTES
            data = b"" if too_large else stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"cannot read {quoted(file, 200)}: {reason}", "give the path of a readable spec") from None
    if too_large or len(data) > MAX_BYTES:
        _refuse(Span(file, 1, 1, 1, ""), *_TOO_LARGE)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        start = len(data[: error.start].decode())
        span = Lines(data.decode(errors="replace"), file).span(start, start + 1)
        _refuse(span, "E002", f"the byte 0x{data[error.start]:02x} is not UTF-8 text", "save the file as UTF-8 text")
    return parse(text, file)


def parse(text: str, file: str, instead: str = "start with archc: 1") -> Node:
    """Parse the text of a spec; `file` is its name in diagnostics. Raises SpecError with everything found wrong.

    `instead` is what to write instead of nothing.
    """
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        _refuse(Span(file, 1, 1, 1, ""), *_TOO_LARGE)
    text = text.removeprefix("\ufeff")
    if bad := _NOT_YAML.search(text):
        name = "a NUL character" if bad[0] == "\0" else f"the character U+{ord(bad[0]):04X}"
        span = Lines(text, file).span(bad.start(), bad.end())
        _refuse(span, "E002", f"{name} cannot be in a spec", "write plain UTF-8 text, or an escape in double quotes")
    return _Builder(text, file, instead).build()


def parse_value(text: str, file: str) -> Node:
    """Parse a single value as `parse` does: a scalar, [1, 2] or {kind: rope}, but no block such as `kind: rope`."""
    node = parse(text, file, "write null for no value")
    if isinstance(node.value, Mapping | tuple) and not text.lstrip().startswith(("[", "{")):
        _refuse(node.span, "E001", "this needs brackets", "write a list as [a, b] and a mapping as {key: value}")
    return node


def scalar(text: str) -> Scalar:
    """Return what the text means as a plain scalar of a spec, such as 1e-6 on a command line.

    What is no null, boolean or number is a string, whatever quotes or brackets it holds. Raises SpecError for a number
    that is not finite or does not fit in 64 bits.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _DECIMAL.fullmatch(text) or _BASED.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value) or (value == 0 and _NOT_ZERO.match(text)):
            _refuse_number(text, "is out of the range of a 64-bit float", "write a number from 1e-308 to 1e308")
        return value
    if _NOT_FINITE.fullmatch(text):
        _refuse_number(text, "is not a finite number", "write a finite number")
    return text


def _integer(text: str) -> int:
    if text.startswith(("0o", "0x")):
        value = int(text, 0)
    else:
        # int() has an error of its own for thousands of digits; twenty are too many already.
        digits = text.lstrip("+-").replace("_", "").lstrip("0")[:20]
        value = int(f"{text[0] if text[0] == '-' else ''}{digits or 0}")
    if not -(2**63) <= value < 2**63:
        _refuse_number(text, "does not fit in 64 bits", "write an integer from -2**63 to 2**63 - 1")
    return value


def _refuse(span: Span, code: str, message: str, mend: str) -> NoReturn:
    raise SpecError([Diagnostic(code, Level.ERROR, message, mend, span)])


def _refuse_number(text: str, fault: str, mend: str) -> NoReturn:
    span = Span("<value>", 1, 1, len(text), text)
    _refuse(span, "E007", f"{quoted(text)} {fault}", f"{mend}, or quote it if it is text")


class _Frame(Struct):
    """A collection whose end has not been seen yet."""

    start: int
    fields: dict[str, Node] | None  # None for a sequence
    items: list[Node] = field(default_factory=list)
    key_span: Span | None = None  # of the key whose value is awaited
    key: str | None = None  # None also for a key that was refused: its value is still checked, then dropped


class _StopParsingError(Exception):
    """What was just reported leaves nothing to go on with."""


class _Builder:
    """Builds the tree from parser events, collecting what is wrong on the way. Positions are offsets into the text."""

    def __init__(self, text: str, file: str, instead: str) -> None:
        self.text = text
        self.instead = instead
        self.lines = Lines(text, file)
        self.problems: list[Diagnostic] = []
        self.stack: list[_Frame] = []
        self.root: Node | None = None
        self.documents = 0
        self.seen = 0  # where the last event ended

    def build(self) -> Node:
        # The parsers differ in the tabs they accept, so no line may start with one, inside a text or outside.
        for tab in _TABBED.finditer(self.text):
            self.report(tab.start(1), tab.end(1), *_TAB)
        try:
            events: Iterator[Any] = yaml.parse(self.text, Loader=_LOADER)
            for event in events:
                self.take(event, event.start_mark.index, event.end_mark.index)
                self.seen = event.end_mark.index
        except _StopParsingError:
            pass
        except yaml.MarkedYAMLError as error:
            self.report_syntax(error)
        except (yaml.YAMLError, ValueError, OverflowError):
            # The pure parser lets errors of chr() and int() through, for escapes and versions without meaning.
            self.report(self.seen, self.seen + 1, "E001", "this is not valid YAML", "check the escapes in quotes")
        if self.root is None and not self.problems:
            self.report(0, 1, "E001", "there is nothing here", self.instead)
        if self.problems or self.root is None:
            raise SpecError(self.problems)
        return self.root

    def take(self, event: yaml.Event, start: int, end: int) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    self.report(start, end, "E001", "a second document starts here", "write one document in a file")
                    raise _StopParsingError
            case yaml.AliasEvent():
                self.report(start, end, *_ANCHOR)
                self.place(None, start, end, refused=True)
            case yaml.ScalarEvent():
                self.take_scalar(event, start, end)
            case yaml.CollectionStartEvent():
                self.open(event, start)
            case yaml.CollectionEndEvent():
                frame = self.stack.pop()
                value = tuple(frame.items) if frame.fields is None else MappingProxyType(frame.fields)
                self.place(value, frame.start, end)

    def open(self, event: yaml.CollectionStartEvent, start: int) -> None:
        if len(self.stack) == MAX_DEPTH:
            self.report(start, start + 1, *_TOO_DEEP)
            raise _StopParsingError
        self.refuse_properties(event, start)
        self.stack.append(_Frame(start, {} if isinstance(event, yaml.MappingStartEvent) else None))

    def take_scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> None:
        event.value.encode()  # a ValueError for half a surrogate pair, which only the pure parser lets through
        is_plain = event.style in (None, "")
        self.refuse_properties(event, start)
        is_key = bool(self.stack) and self.stack[-1].fields is not None and self.stack[-1].key_span is None
        refused = is_key and is_plain and event.tag is None and event.value == "<<"
        if refused:
            self.report(start, end, *_ANCHOR)
        value: Scalar = event.value
        if is_plain and event.tag is None:
            try:
                value = scalar(event.value)
            except SpecError as error:
                fault = error.diagnostics[0]
                self.report(start, end, fault.code, fault.message, fault.mend)
        self.place(value, start, end, refused=refused)

    def refuse_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, start: int) -> None:
        """Refuse an anchor and a tag."""
        if event.anchor is not None:
            at = self.text.index("&", start)
            self.report(at, at + 1 + len(event.anchor), *_ANCHOR)
        if event.tag is not None:
            self.report(*next(_TAGGED.finditer(self.text, start)).span(), *_TAG)

    def place(self, value: Any, start: int, end: int, *, refused: bool = False) -> None:
        """Put a complete value where it belongs: at the root, in a sequence, or in a mapping as a key or its value."""
        span = self.lines.span(start, end)
        if not self.stack:
            self.root = Node(value, span) if end > start else None  # no character at all: an empty document
            return
        frame = self.stack[-1]
        if frame.fields is None:
            frame.items.append(Node(value, span))
        elif frame.key_span is None:
            frame.key, frame.key_span = None if refused else self.key_name(frame.fields, value, start, end), span
        else:
            if frame.key is not None:
                frame.fields[frame.key] = Node(value, span if end > start else frame.key_span, frame.key_span)
            frame.key = frame.key_span = None

    def key_name(self, fields: Mapping[str, Node], value: object, start: int, end: int) -> str | None:
        if type(value) not in (str, int):
            self.report(start, end, "E001", "a key has to be a text", "write `key: value`, and quote a key like this")
            return None
        name = str(value)
        if name in fields:
            first = fields[name].key_span or fields[name].span
            message = f"the key {quoted(name)} is already used on line {first.line}"
            self.report(start, end, "E006", message, "keep one of the two")
            return None
        return name

    def report_syntax(self, error: yaml.MarkedYAMLError) -> None:
        words = f"{error.context}: {error.problem}"
        at = error.problem_mark.index if error.problem_mark else self.seen
        if _TABBED.match(self.text, self.text.rfind("\n", 0, at) + 1):
            return  # it follows from the tab, which is already reported
        last = len(self.text.rstrip(" \r\n")) - 1
        if error.context_mark and (at > last or _STARTS_EARLIER.search(words)):
            at = error.context_mark.index
        at = max(0, min(at, last))
        said = _TAB if self.text[at] == "\t" else next(said for pattern, said in _SYNTAX if re.search(pattern, words))
        self.report(at, at + 1, *said)

    def report(self, start: int, end: int, code: str, message: str, mend: str) -> None:
        steps = (str(len(f.items)) if f.fields is None else f.key for f in self.stack)
        path = ".".join(step for step in steps if step is not None)
        self.problems.append(Diagnostic(code, Level.ERROR, message, mend, self.lines.span(start, end), path))
