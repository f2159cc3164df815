"""From text to nodes: every scalar by YAML 1.2, every place right, and every trick of YAML refused."""

import json
import math
import os
import re
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from archc.errors import UsageError
from archc.spec import source
from archc.spec.diagnostics import SpecError
from archc.spec.source import Node, entries, parse, parse_value, read, scalar

MAX_BYTES = 1024 * 1024

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])]


@pytest.fixture(autouse=True, params=LOADERS, ids=lambda loader: loader.__name__, scope="module")
def _each_parser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run everything with libyaml and with the pure-Python parser: which one a user has must not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_LOADER", request.param)
        yield


def problems(text: str) -> list[tuple[str, int, int]]:
    """What is wrong with a text: code, line and column of each diagnostic; nothing if it can be parsed."""
    try:
        parse(text, "f.yaml")
    except SpecError as error:
        spans = [(found.code, found.span) for found in error.diagnostics]
        return [(code, span.line, span.column) for code, span in spans if span]
    return []


def codes(text: str) -> set[str]:
    return {code for code, _, _ in problems(text)}


def plain(text: str) -> object:
    return parse(text, "f.yaml").plain()


def walk(node: Node) -> Iterator[Node]:
    yield node
    value = node.value
    for child in value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ():
        yield from walk(child)


# ---------------------------------------------------------------- scalars

# Example 10.9 of the YAML 1.2.2 specification (core schema), where archc is not stricter.
CORE_SCHEMA = """\
A null: null
Also a null: # Empty
Not a null: ""
Booleans: [ true, false ]
Integers: [ 0, 0o7, 0x3A, -19 ]
Floats: [ 0., -0.0, .5, +12e03, -2E+05 ]
"""


def test_core_schema() -> None:
    assert plain(CORE_SCHEMA) == {
        "A null": None,
        "Also a null": None,
        "Not a null": "",
        "Booleans": [True, False],
        "Integers": [0, 7, 58, -19],
        "Floats": [0.0, -0.0, 0.5, 12000.0, -200000.0],
    }
    zero = parse(CORE_SCHEMA, "f").find(["Floats", 1]).value
    assert isinstance(zero, float)
    assert math.copysign(1, zero) == -1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1.0e-5", 1e-5),
        ("5e5", 500000.0),
        ("1e6", 1e6),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("128_256", 128256),
        ("-1_000", -1000),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "1", 1),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("0e-999", 0.0),
        ("0.000e-400", 0.0),
        ("~", None),
        ("null", None),
        ("true", True),
        ("false", False),
        *((word, word) for word in ["yes", "no", "on", "off", "True", "FALSE", "Null", "NULL", "y", "n"]),
        *((word, word) for word in ["1__0", "_1", "1_", "1_0.5", "0b1", "0o8", "0xg", "+0x1", "1:20", "12:30:45"]),
        *((word, word) for word in [".", "e5", "1e", "1e+", "+", "1.2.3", "2024-01-01", "nan", "inf", "٣", "..inf"]),
    ],
)
def test_scalar(text: str, value: object) -> None:
    for read_value in (scalar(text), parse(text, "f").value, parse(f"[{text}]", "f").find([0]).value):
        assert read_value == value
        assert type(read_value) is type(value)


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("text", ["", "1", "1e-6", "true", "null", "~", ".nan", "<<", "1e999"])
def test_quoted_is_a_string(text: str, quote: str) -> None:
    assert plain(quote + text + quote) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_round_trip(number: int) -> None:
    assert scalar(str(number)) == scalar(f"{number:_}") == scalar(f"{number:+}") == number
    if number >= 0:
        assert scalar(hex(number)) == scalar(oct(number)) == number


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
def test_integers_beyond_64_bits_are_refused(number: int) -> None:
    assert codes(str(number)) == {"E007"}
    assert plain(f"'{number}'") == str(number)
    if number > 0:
        assert codes(hex(number)) == codes(oct(number)) == {"E007"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_round_trip(number: float) -> None:
    value = scalar(repr(number))
    assert type(value) is float
    assert value == number
    assert scalar(f"{number:.17E}") == number


@pytest.mark.parametrize(
    "text", [".nan", ".NaN", ".NAN", ".inf", "-.Inf", "+.INF", "1e999", "-1e999", "1e-400", "9" * 400 + ".", "9" * 9999]
)
def test_numbers_that_cannot_be_kept_are_refused(text: str) -> None:
    assert problems(f"a: {text}") == [("E007", 1, 4)]
    with pytest.raises(SpecError) as caught:
        scalar(text)
    assert [found.code for found in caught.value.diagnostics] == ["E007"]
    assert scalar(text[:-1] + "x") == text[:-1] + "x"


@given(st.text())
def test_scalar_takes_any_text(text: str) -> None:
    try:
        value = scalar(text)
    except SpecError:
        return
    assert value == text or text in {"", "~", "null", "true", "false"} or text[0] in "+-.0123456789"


# ---------------------------------------------------------------- trees

# Characters that YAML allows unescaped.
YAML_TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff\ufffe\uffff"), max_size=20
)
JSON_TREE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | YAML_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(YAML_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON_TREE)
def test_json_is_yaml(tree: object) -> None:
    text = json.dumps(tree, ensure_ascii=False)
    assert plain(text) == parse_value(text, "f").plain() == tree


def _keeps_its_type(text: str) -> bool:
    """Whether PyYAML, which follows YAML 1.1, quotes a text that YAML 1.2 would read as a number."""
    return not re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?|0o[0-7]+", text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=120).filter(_keeps_its_type),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20).filter(_keeps_its_type), inner)
        ),
        max_leaves=20,
    ),
    st.booleans(),
)
def test_what_pyyaml_writes_is_read_back(tree: object, flow: bool) -> None:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump(tree, Dumper=Dumper, default_flow_style=flow)
    assert plain(text) == tree


def test_pyyaml_would_read_exponents_as_strings() -> None:
    """The reason why archc resolves scalars itself."""
    assert yaml.safe_load("a: 1e-6") == {"a": "1e-6"}
    assert plain("a: 1e-6") == {"a": 1e-6}


SPEC = """\
# a comment
name: 'tiny'
attention: {heads: 8, window: }
layers:
  - local
  - kinds:
      global:
    12: x
"""


def test_every_node_knows_its_place() -> None:
    root = parse(SPEC, "f.yaml")
    places = {
        (): (2, 1, "name: 'tiny'", None),
        ("name",): (2, 7, "'tiny'", (2, 1, "name")),
        ("attention",): (3, 12, "{heads: 8, window: }", (3, 1, "attention")),
        ("attention", "heads"): (3, 20, "8", (3, 13, "heads")),
        ("attention", "window"): (3, 23, "window", (3, 23, "window")),  # left out: its key stands for it
        ("layers",): (5, 3, "- local", (4, 1, "layers")),
        ("layers", 0): (5, 5, "local", None),
        ("layers", 1): (6, 5, "kinds:", None),
        ("layers", 1, "kinds", "global"): (7, 7, "global", (7, 7, "global")),
        ("layers", 1, "12"): (8, 9, "x", (8, 5, "12")),
        ("layers", 1, 12): (8, 9, "x", (8, 5, "12")),
    }
    for path, (line, column, text, key) in places.items():
        node = root.find(path)
        span = node.span
        assert (span.file, span.line, span.column) == ("f.yaml", line, column), path
        assert span.text == SPEC.splitlines()[line - 1]
        assert span.text[column - 1 : column - 1 + span.length] == text
        found = node.key_span
        assert (found and (found.line, found.column, found.text[found.column - 1 :][: found.length])) == key, path
    assert root.plain() == {
        "name": "tiny",
        "attention": {"heads": 8, "window": None},
        "layers": ["local", {"kinds": {"global": None}, "12": "x"}],
    }


def test_find_stops_at_the_deepest_node() -> None:
    root = parse(SPEC, "f.yaml")
    assert root.find([]) is root
    assert root.find(["attention", "nope", "heads"]) is root.find(["attention"])
    assert root.find(["name", "x"]) is root.find(["name"])
    for missing in (2, -1, "0"):
        assert root.find(["layers", missing]) is root.find(["layers"])
    assert entries(root.find(["layers", 1]))
    assert not entries(root.find(["layers"]))


def test_nodes_cannot_be_changed() -> None:
    root = parse("{a: 1}", "f")
    with pytest.raises(TypeError):
        root.value["a"] = root  # type: ignore[index]
    with pytest.raises(AttributeError):
        root.value = 1  # type: ignore[misc]


def test_plain_is_a_copy() -> None:
    root = parse("{a: [1]}", "f")
    copy = root.plain()
    assert isinstance(copy, dict)
    copy["a"].append(2)
    assert root.plain() == {"a": [1]}


YAML_LIKE = st.text(
    st.sampled_from(list("ab1.-_:,?[]{}#&*!|>'\"%@`\\~=<0xeo \n\n\t\r")) | st.characters(max_codepoint=0x2030),
    max_size=80,
)


@given(YAML_LIKE | st.text(max_size=40))
def test_any_text_gives_a_tree_or_a_spec_error_and_every_place_is_in_it(text: str) -> None:
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    error: SpecError | None = None
    nodes: list[Node] = []
    try:
        nodes = list(walk(parse(text, "f")))
    except SpecError as caught:
        error = caught
    spans = [span for node in nodes for span in (node.span, node.key_span) if span]
    for node in nodes:
        written = node.span.text[node.span.column - 1 :][: node.span.length]
        if isinstance(node.value, bool | int | float) and "!" not in text:
            assert scalar(written) == node.value
    if error:
        spans = [found.span for found in error.diagnostics if found.span]
        assert len(spans) == len(error.diagnostics) > 0
        assert all(found.mend for found in error.diagnostics)
        assert str(error).replace("\n", "").isprintable()
    for span in spans:
        assert span.text == lines[span.line - 1]
        assert 1 <= span.column <= max(1, len(span.text))
        assert 1 <= span.length <= max(1, len(span.text) - span.column + 1)


@pytest.mark.skipif(len(LOADERS) < 2, reason="needs libyaml")
@given(YAML_LIKE)
def test_both_parsers_agree(text: str) -> None:
    """But for tabs, of which the pure-Python parser accepts fewer."""
    trees: list[Node | None] = []
    for loader in LOADERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "_LOADER", loader)
            try:
                trees.append(parse(text, "f"))
            except SpecError:
                trees.append(None)
    assert trees[0] == trees[1] or (trees[0] is None and "\t" in text)


# ---------------------------------------------------------------- refusals, each with a twin that is fine

REFUSED = [
    # Tabs
    ("a:\n\tb: 1", "E001", 2, 1, "a:\n  b: 1"),
    ("a:\n  - 1\n\t- 2", "E001", 3, 1, "a:\n  - 1\n  - 2"),
    ("a: 1\n \tb: 2", "E001", 2, 2, "a: 1\nb: 2"),
    ("a: b\n\tc", "E001", 2, 1, "a: b\n  c"),
    ("a: [1,\n\t2]", "E001", 2, 1, "a: [1,\n  2]"),
    ("a: 'x\n\ty'", "E001", 2, 1, "a: 'x\n  y\t'"),
    ("a: |\n  \tx", "E001", 2, 3, 'a: "\\tx"'),
    ("- \ta", "E001", 1, 3, "-  a"),
    ("a: [1,\n\t\n2]", "E001", 2, 1, "a: [1,\n\n2]"),
    ("a: 1\n  \t", "E001", 2, 3, "a: 1\n  "),
    # Other syntax
    ("a: b: c", "E001", 1, 5, "a: 'b: c'"),
    ("a: 1\n b: 2", "E001", 2, 3, "a: 1\nb: 2"),
    ("  a: 1\nb: 2", "E001", 2, 1, "  a: 1\n  b: 2"),
    ("a: [1, 2\n\n", "E001", 1, 4, "a: [1, 2]\n\n"),
    ("a: [1, 2\nb: 3", "E001", 2, 2, "a: [1, 2]\nb: 3"),
    ("a: {x: 1", "E001", 1, 4, "a: {x: 1}"),
    ("[a, , b]", "E001", 1, 5, "[a, b, ]"),
    ("[a]]", "E001", 1, 4, "[[a]]"),
    ("a: 'x\nb: 2\n", "E001", 1, 4, "a: 'x'\nb: 2\n"),
    ("a: 'x\n---\n'", "E001", 1, 4, "a: 'x\n ---\n'"),
    ("a: 'don't'", "E001", 1, 9, "a: 'don''t'"),
    ("a: 1\nb\n", "E001", 2, 1, "a: 1\nb:\n"),
    ("a: 1\n- b", "E001", 2, 1, "a: 1\nb: 2"),
    ("- a\nb: 1", "E001", 2, 1, "- a\n- b: 1"),
    ("a: - b", "E001", 1, 4, "a:\n- b"),
    ("a: @x", "E001", 1, 4, "a: '@x'"),
    ("a: ]", "E001", 1, 4, "a: ']'"),
    ("%YAML 2.0\n---\na", "E001", 1, 1, "%YAML 1.2\n---\na"),
    # Documents
    ("", "E001", 1, 1, "null"),
    ("# only a comment\n", "E001", 1, 1, "# only a comment\n~"),
    ("---\n", "E001", 1, 1, "---\n''"),
    ("a: 1\n---\nb: 2", "E001", 2, 1, "---\na: 1\n...\n"),
    ("---\n---\na: 1", "E001", 2, 1, "---\na: 1"),
    # Keys
    ("? [a]\n: 1", "E001", 1, 3, "'[a]': 1"),
    ("? {a: b}\n: 1", "E001", 1, 3, "'{a: b}': 1"),
    ("null: 1", "E001", 1, 1, "'null': 1"),
    ("true: 1", "E001", 1, 1, "'true': 1"),
    ("1.5: 1", "E001", 1, 1, "1: 1"),
    ("? \n: 1", "E001", 1, 2, "'': 1"),
    # Tags
    ("a: !!python/object/apply:os.system [id]", "E004", 1, 4, "a: ['!!python/object/apply:os.system']"),
    ("a: !!python/name:os.system", "E004", 1, 4, "a: os.system"),
    ("a: !!set {x}", "E004", 1, 4, "a: {x: null}"),
    ("a: !!binary aGk=", "E004", 1, 4, "a: aGk="),
    ("a: !!timestamp 2024-01-01", "E004", 1, 4, "a: 2024-01-01"),
    ("a: !mine 1", "E004", 1, 4, "a: '!mine 1'"),
    ("a: ! 1", "E004", 1, 4, "a: 1"),
    ("a: !<tag:yaml.org,2002:python/none> 1", "E004", 1, 4, "a: 1"),
    ("%TAG ! tag:yaml.org,2002:python/\n---\n!none 1", "E004", 3, 1, "%TAG ! tag:yaml.org,2002:\n---\n1"),
    ("!no!handle 1", "E004", 1, 1, "1"),
    ("!!x a: 1", "E004", 1, 1, "a: 1"),
    # Those of plain data too: quotes say the same in fewer words
    ("!!int 5", "E004", 1, 1, "5"),
    ("a: !!str 1", "E004", 1, 4, "a: '1'"),
    ("a: !!float '1'", "E004", 1, 4, "a: 1.0"),
    ("a: !<tag:yaml.org,2002:int> 1", "E004", 1, 4, "a: 1"),
    ("[1, !!bool true]", "E004", 1, 5, "[1, true]"),
    ("!!str a: 1", "E004", 1, 1, "a: 1"),
    ("!!map {a: 1}", "E004", 1, 1, "{a: 1}"),
    ("!!seq [1]", "E004", 1, 1, "[1]"),
    # Anchors, aliases, merge keys
    ("a: &x 1", "E005", 1, 4, "a: '&x 1'"),
    ("a: &x [1]", "E005", 1, 4, "a: [1]"),
    ("&x a: 1", "E005", 1, 1, "a: 1"),
    ("a: *x", "E005", 1, 4, "a: '*x'"),
    ("*x : 1", "E005", 1, 1, "'*x': 1"),
    ("<<: {a: 1}", "E005", 1, 1, "'<<': {a: 1}"),
    ("a: {<<: 1}", "E005", 1, 5, "a: <<"),
    ("a: &", "E005", 1, 4, "a: '&'"),
    # Duplicate keys
    ("a: 1\nb: 2\na: 3", "E006", 3, 1, "a: 1\nb: {a: 3}"),
    ("{a: 1, 'a': 2}", "E006", 1, 8, "{a: 1, A: 2}"),
    ("1: x\n0x1: y", "E006", 2, 1, "1: x\n2: y"),
    ("1: x\n'1': y", "E006", 2, 1, "1: x\n'01': y"),
    # Numbers
    ("a: .nan", "E007", 1, 4, "a: '.nan'"),
    ("a: [1, -.inf]", "E007", 1, 8, "a: [1, -.5]"),
    ("1e999: 1", "E007", 1, 1, "'1e999': 1"),
    # Characters
    ("a: x\0y", "E002", 1, 5, 'a: "x\\0y"'),
    ("a: \x1b[2J", "E002", 1, 4, 'a: "\\e[2J"'),
    ("a: 1\nb: \udc80", "E002", 2, 4, "a: 1\nb: é"),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "fine"), REFUSED, ids=lambda value: repr(value)[:40])
def test_refused(text: str, code: str, line: int, column: int, fine: str) -> None:
    assert problems(text) == [(code, line, column)]
    assert problems(fine) == []


@pytest.mark.parametrize(
    "text", ['a: "\\q"', 'a: "\\xzz"', 'a: "\\ud800"', 'a: "\\UFFFFFFFF"', "%YAML 1." + "9" * 5000]
)
def test_nonsense_between_the_lines(text: str) -> None:
    """Where exactly depends on the parser."""
    assert codes(text) == {"E001"}


def test_good_escapes() -> None:
    assert plain(r'"\x41\u00e9\U0001F600\n\\"') == "Aé😀\n\\"


def test_all_problems_at_once() -> None:
    text = """\
a: !x 1
b: &y .inf
a: 2
c: [*y, {d: 1, d: 2}]
? [1]
: {e: .nan}
f:
\tg: 1
h: 'i
"""
    assert sorted(problems(text), key=lambda found: found[1:]) == [
        ("E004", 1, 4),
        ("E005", 2, 4),
        ("E007", 2, 4),
        ("E006", 3, 1),
        ("E005", 4, 5),
        ("E006", 4, 16),
        ("E001", 5, 3),
        ("E007", 6, 7),
        ("E001", 8, 1),
    ]


@pytest.mark.parametrize("refused", ["*x", "&x 1", "!x 1", ".nan", "{<<: 1}"])
def test_what_follows_a_refused_value_keeps_its_role(refused: str) -> None:
    (first, *_), *rest = problems(f"a: {refused}\n1.5: b\nc: d\nc: e")
    assert first in {"E004", "E005", "E007"}
    assert rest == [("E001", 2, 1), ("E006", 4, 1)]


def test_a_syntax_error_does_not_hide_what_came_before() -> None:
    assert problems("a: !x 1\na: 2\nb: 'c\n") == [("E004", 1, 4), ("E006", 2, 1), ("E001", 3, 4)]


def test_paths_and_words() -> None:
    with pytest.raises(SpecError) as caught:
        parse("layers:\n  - {a: 1}\n  - window: .inf\n    window: 2\n", "f.yaml")
    first, second = caught.value.diagnostics
    assert first.path == "layers.1.window"
    assert "'.inf'" in first.message
    assert second.path == "layers.1"
    assert "line 3" in second.message
    assert "f.yaml:4:5: error[E006]: the key 'window'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n\tb: 1", "tabs cannot indent YAML"),
        ("a: \0", "a NUL character cannot be in a spec"),
        ("a: \x1b", r"the character U\+001B cannot be in a spec"),
        ("a: !x 1", "this tag is not allowed"),
        ("a: 'x", "this quote is never closed"),
        ("a: 1\na: 2", "the key 'a' is already used on line 1"),
        ("a: .nan", "'.nan' is not a finite number"),
        ("[" * 41, "more than 40 levels of nesting"),
    ],
)
def test_words(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parse(text, "f")


# ---------------------------------------------------------------- attacks


def test_yaml_cannot_run_code(tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"a: !!python/object/apply:os.mkdir ['{made}']"
    assert codes(text) == {"E004"}
    assert not made.exists()
    yaml.unsafe_load(text)
    assert made.exists(), "the attack has to be a real one"


def test_billion_laughs_are_refused_unexpanded() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    start = time.process_time()
    assert codes("\n".join(lines)) == {"E005"}
    assert time.process_time() - start < 1


@pytest.mark.parametrize("opening", ["[", "{", "{a: ", "- ", "? ", "[{a: "])
def test_deep_nesting_is_refused_quickly(opening: str) -> None:
    start = time.process_time()
    assert codes(opening * 100_000) == {"E003"}
    assert time.process_time() - start < 1


def test_nesting_limit() -> None:
    assert problems("[" * 40 + "]" * 40) == []
    assert problems("[" * 41 + "]" * 41) == [("E003", 1, 41)]
    assert problems("- " * 40 + "x") == []
    assert problems("- " * 41 + "x") == [("E003", 1, 81)]
    # Wide is not deep.
    assert problems("[" + "[]," * 1000 + "]") == []


# ---------------------------------------------------------------- values of a command line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("[1, 2]", [1, 2]),
        (" {kind: rope, base: 5e5} ", {"kind": "rope", "base": 5e5}),
        ("3*(5*local, global)", "3*(5*local, global)"),
        ("'1'", "1"),
        ("null", None),
    ],
)
def test_parse_value(text: str, value: object) -> None:
    assert parse_value(text, "--set").plain() == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: 1", "E001"),
        ("- 1", "E001"),
        ("{a: 1}: 2", "E001"),
        ("", "E001"),
        ("[1, 2", "E001"),
        ("[&a 1]", "E005"),
        ("!x 1", "E004"),
        ("{a: 1, a: 2}", "E006"),
        (".nan", "E007"),
        ("\udc80", "E002"),
        ("[" * 50, "E003"),
        ("x" * (MAX_BYTES + 1), "E003"),
    ],
)
def test_parse_value_refuses(text: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_value(text, "--set")
    assert [found.code for found in caught.value.diagnostics] == [code]


# ---------------------------------------------------------------- files


def refusal(path: Path) -> tuple[str, int, int]:
    with pytest.raises(SpecError) as caught:
        read(path)
    (found,) = caught.value.diagnostics
    assert found.span
    assert found.span.file == str(path)
    return found.code, found.span.line, found.span.column


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffgröße: 1\r\nb: 2\r\n".encode())
    root = read(path)
    assert root.plain() == {"größe": 1, "b": 2}
    place = root.find(["b"]).span
    assert (place.file, place.line, place.column, place.text) == (str(path), 2, 4, "b: 2")


def test_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1 #" + b"x" * (MAX_BYTES - 6))
    assert read(path).plain() == {"a": 1}
    with path.open("ab") as stream:
        stream.write(b"x")
    assert refusal(path) == ("E003", 1, 1)


def test_size_is_counted_in_bytes() -> None:
    assert codes("a: 1 #" + "é" * (MAX_BYTES // 2 - 3)) == set()
    assert codes("a: 1 #" + "é" * (MAX_BYTES // 2 - 2)) == {"E003"}


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(50 * 2**20)
    tracemalloc.start()
    start = time.process_time()
    assert refusal(path) == ("E003", 1, 1)
    assert time.process_time() - start < 1
    assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    tracemalloc.stop()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_device_is_not_read_to_its_end() -> None:
    assert refusal(Path("/dev/zero"))[0] == "E003"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(("size", "code"), [(0, None), (MAX_BYTES, "E003"), (4 * MAX_BYTES, "E003")])
def test_pipes(tmp_path: Path, size: int, code: str | None) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        # The reader hangs up as soon as it has seen too much.
        try:
            with path.open("wb") as stream:
                stream.write(b"a: 1 #" + b"x" * size)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    if code:
        assert refusal(path)[0] == code
    else:
        assert read(path).plain() == {"a": 1}
    writer.join(10)
    assert not writer.is_alive()


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"a: 1\nb: \xff\n", ("E002", 2, 4)),
        ("é: é".encode() + b"\xff xyz", ("E002", 1, 5)),
        ("a: 1".encode("utf-16"), ("E002", 1, 1)),
        ("a: é".encode("latin-1"), ("E002", 1, 4)),
        (b"a: 1\n\0", ("E002", 2, 1)),
        (b"\xed\xa0\x80", ("E002", 1, 1)),  # a surrogate
        (b"", ("E001", 1, 1)),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, place: tuple[str, int, int]) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    assert refusal(path) == place


def test_a_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path)[0] == "E002"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a: 1")
    for name in ("missing.yaml", "file/below", "x" * 5000, "nul\0", "\x1b[2J"):
        with pytest.raises(UsageError) as caught:
            read(tmp_path / name)
        assert caught.value.mend
        assert str(caught.value).isprintable()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        read(path)
    path.chmod(0o600)
    assert read(path).plain() == {"a": 1}
