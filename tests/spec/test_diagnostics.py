"""Diagnostics: what is shown, in which order, and that nothing in a spec can reach the terminal as a command."""

import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archc.errors import ArchcError
from archc.spec.diagnostics import EXCERPT_WIDTH, Diagnostic, Level, Lines, Span, SpecError, printable, quoted, render

ANSI = re.compile(r"\x1b\[[0-9;]*m")
ANY_TEXT = st.text(max_size=60)


def diagnostic(
    message: str = "m",
    *,
    code: str = "E101",
    level: Level = Level.ERROR,
    span: Span | None = None,
    mend: str = "",
    path: str = "",
) -> Diagnostic:
    return Diagnostic(code, level, message, mend, span, path)


def at(line: int, column: int = 1, file: str = "a.yaml") -> Span:
    return Span(file, line, column, 1, "some text")


def test_layout() -> None:
    span = Span("llama.yaml", 12, 3, 7, "  kv_head: 8")
    found = Diagnostic("E101", Level.ERROR, "unknown key 'kv_head' in attention", "did you mean 'kv_heads'?", span)
    assert render([found]) == (
        "llama.yaml:12:3: error[E101]: unknown key 'kv_head' in attention\n"
        "   12 |   kv_head: 8\n"
        "      |   ^^^^^^^\n"
        "   = mend: did you mean 'kv_heads'? See `archc explain E101`"
    )


@pytest.mark.parametrize(
    ("span", "path", "headline"),
    [
        (None, "", "error[E101]: m"),
        (None, "attention.heads", "attention.heads: error[E101]: m"),
        (Span("a.yaml", 1, 1, 1, ""), "attention.heads", "a.yaml:1:1: error[E101]: m"),
    ],
)
def test_without_text_there_is_only_a_headline(span: Span | None, path: str, headline: str) -> None:
    assert render([diagnostic(span=span, path=path)]) == headline


@pytest.mark.parametrize(
    ("mend", "line"),
    [
        ("use 8", "   = mend: use 8. See `archc explain E101`"),
        ("use 8.", "   = mend: use 8. See `archc explain E101`"),
        ("8?", "   = mend: 8? See `archc explain E101`"),
        ("read `archc explain E7`", "   = mend: read `archc explain E7`"),
    ],
)
def test_mend_says_where_to_read_more_once(mend: str, line: str) -> None:
    assert render([diagnostic(mend=mend)]).splitlines()[-1] == line


def test_errors_come_first_then_by_place() -> None:
    found = [
        diagnostic("6", level=Level.NOTE, span=at(1)),
        diagnostic("5", level=Level.WARNING, span=at(1)),
        diagnostic("4"),
        diagnostic("3", span=at(1, file="b.yaml")),
        diagnostic("2", span=at(10)),
        diagnostic("1", span=at(9, 2)),
        diagnostic("0", span=at(9, 1)),
    ]
    assert re.findall(r"\]: (\d)", render(found)) == list("0123456")


def test_duplicates_are_shown_once() -> None:
    once = render([diagnostic(span=at(1))])
    assert render([diagnostic(span=at(1)), diagnostic(span=at(1), path="elsewhere")]) == once
    for other in (diagnostic(span=at(2)), diagnostic("n", span=at(1)), diagnostic(code="E102", span=at(1))):
        assert render([diagnostic(span=at(1)), other]).startswith(once + "\n")


@pytest.mark.parametrize(
    ("count", "shown", "last"), [(20, 20, "error[E101]: 19"), (21, 20, "… and 1 more"), (90, 20, "… and 70 more")]
)
def test_limit(count: int, shown: int, last: str) -> None:
    # Twice each: duplicates must not count.
    lines = render([diagnostic(f"{n:02}") for n in range(count)] * 2).splitlines()
    assert lines[-1] == last
    assert sum(line.startswith("error") for line in lines) == shown


def test_nothing_to_say() -> None:
    assert render([]) == ""


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\r\nb\tc\0", r"a\r\nb\tc\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u2028", r"\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("\xa0", r"\xa0"),
        ("\udc80", r"\udc80"),
        ("größe 大 😀 \\x1b", "größe 大 😀 \\x1b"),
    ],
)
def test_printable(raw: str, shown: str) -> None:
    assert printable(raw) == shown
    assert quoted(raw) == f"'{shown}'"


def test_quoted_is_cut() -> None:
    assert quoted("a" * 60) == "'" + "a" * 60 + "'"
    assert quoted("a" * 61) == "'" + "a" * 59 + "…'"


@given(
    st.builds(
        Diagnostic,
        ANY_TEXT,
        st.sampled_from(Level),
        ANY_TEXT,
        ANY_TEXT,
        st.none() | st.builds(Span, ANY_TEXT, st.integers(1, 9), st.integers(1, 70), st.integers(-9, 99), ANY_TEXT),
        ANY_TEXT,
    )
)
def test_no_field_reaches_the_terminal_raw(found: Diagnostic) -> None:
    shown = render([found])
    assert shown.replace("\n", "").isprintable()
    # Line breaks are archc's own: headline, snippet, carets, mend.
    assert shown.count("\n") <= 3
    coloured = render([found], colour=True)
    assert coloured != shown
    assert ANSI.sub("", coloured) == shown


@pytest.mark.parametrize(("level", "number"), [(Level.ERROR, 31), (Level.WARNING, 33), (Level.NOTE, 36)])
def test_colour_tells_levels_apart(level: Level, number: int) -> None:
    assert f"\x1b[1;{number}m{level}[E101]\x1b[0m" in render([diagnostic(level=level, span=at(1))], colour=True)


ASCII_LINE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=3 * EXCERPT_WIDTH)


@given(ASCII_LINE, st.data())
def test_carets_stand_under_what_they_mean(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, len(line)))
    length = data.draw(st.integers(1, len(line) - column + 1))
    _, snippet, carets = render([diagnostic(span=Span("a", 7, column, length, line))]).splitlines()
    first, last = carets.index("^"), carets.rindex("^")
    assert len(snippet) <= EXCERPT_WIDTH + len("    7 | ")
    assert carets[first : last + 1] == "^" * (last + 1 - first)
    marked = snippet[first : last + 1].removesuffix("…")
    assert line[column - 1 : column - 1 + length].startswith(marked)
    if len(line) <= EXCERPT_WIDTH:
        assert marked == line[column - 1 : column - 1 + length]


@pytest.mark.parametrize(
    ("text", "column", "length", "carets"),
    [
        ("名前: x", 5, 1, "      ^"),  # two terminal columns each
        ("名前: x", 1, 2, "^^^^"),
        ("e\u0301: x", 5, 1, "   ^"),  # a combining accent takes none
        ("\x1b: x", 4, 1, "      ^"),  # shown as \x1b
        ("\tx", 1, 1, "^^"),
    ],
)
def test_carets_count_terminal_columns(text: str, column: int, length: int, carets: str) -> None:
    shown = render([diagnostic(span=Span("a", 1, column, length, text))]).splitlines()
    assert shown[2] == "      | " + carets


@pytest.mark.parametrize(
    ("column", "shown", "start"),
    [
        (1, "x" * 199 + "…", 0),
        (500, "…" + "x" * 198 + "…", 100),
        (1000, "…" + "x" * 199, 199),
    ],
)
def test_a_long_line_is_cut_around_the_column(column: int, shown: str, start: int) -> None:
    assert Span("a", 1, column, 1, "x" * 1000).excerpt() == (shown, start)


def test_a_line_of_the_limit_is_not_cut() -> None:
    assert Span("a", 1, 150, 1, "x" * 200).excerpt() == ("x" * 200, 149)
    assert Span("a", 1, 150, 1, "x" * 201).excerpt() == ("…" + "x" * 199, 148)


@pytest.mark.parametrize(("asked", "length"), [(-3, 1), (0, 1), (1, 1), (3, 3), (4, 3), (10**9, 3)])
def test_length_stays_on_the_line(asked: int, length: int) -> None:
    assert Span("a", 1, 2, asked, "abcd").length == length


@pytest.mark.parametrize(
    ("offset", "line", "column", "text"),
    [
        (0, 1, 1, "ab"),
        (1, 1, 2, "ab"),
        (2, 1, 2, "ab"),  # the line break itself
        (4, 2, 1, ""),
        (5, 3, 1, "c\u2028d"),
        (7, 3, 3, "c\u2028d"),  # for YAML a new line, for an editor not
        (9, 4, 1, "e"),
        (10, 4, 1, "e"),  # the end of the text
    ],
)
def test_lines_end_as_in_an_editor(offset: int, line: int, column: int, text: str) -> None:
    assert Lines("ab\r\n\nc\u2028d\re", "f").span(offset, offset + 1) == Span("f", line, column, 1, text)


def test_json() -> None:
    raw = "a\x1bb"
    found = Diagnostic("W201", Level.WARNING, raw, "mend", Span("f.yaml", 2, 5, 3, "  x: abc"), "a.b")
    expected = {
        "code": "W201",
        "level": "warning",
        "message": raw,
        "mend": "mend",
        "file": "f.yaml",
        "line": 2,
        "column": 5,
        "path": "a.b",
    }
    assert found.as_json() == expected
    assert json.loads(json.dumps(found.as_json())) == expected
    assert type(found.as_json()["level"]) is str
    nowhere = diagnostic().as_json()
    assert (nowhere["file"], nowhere["line"], nowhere["column"]) == (None, None, None)


def test_spec_error() -> None:
    found = [diagnostic("one", span=at(1)), diagnostic("two")]
    error = SpecError(iter(found))
    assert isinstance(error, ArchcError)
    assert error.exit_code == 1
    assert error.diagnostics == tuple(found)
    assert str(error) == error.problem == render(found)


def test_spec_error_survives_a_process_boundary() -> None:
    error = SpecError([diagnostic("one", span=at(1))])
    again = pickle.loads(pickle.dumps(error))
    assert again.diagnostics == error.diagnostics
    assert str(again) == str(error)
