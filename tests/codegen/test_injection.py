"""A spec is untrusted input: no text of it becomes code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from archc.architecture import Architecture, compile_text
from archc.architecture.model import Layer
from archc.codegen import generate
from archc.spec.diagnostics import SpecError
from tests.codegen.combinations import BASE, layers
from tests.codegen.support import import_text

HOSTILE = [
    '"""\nimport os\nos.system("true")\n"""',
    'x"\nraise SystemExit\n#',
    "x\nraise SystemExit",
    "x\r\nraise SystemExit",
    "x\u2028raise SystemExit",
    "x\x0craise SystemExit",
    "\\",
    '\\"',
    '\\"""\nraise SystemExit\n"""',
    '"',
    "'''",
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "{# comment",
    "%s {0} {name} \\N{DEGREE SIGN}",
    "\0",
    "ünïcödé",
    "a" * 101,
    "\t",
]
IDS = [ascii(text) for text in HOSTILE]


def quoted(text: str) -> str:
    """The text as a double-quoted YAML scalar."""
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + '"'


def architecture(*overrides: str) -> Architecture:
    return compile_text(BASE, overrides=overrides).architecture


def of_two_kinds() -> Architecture:
    return architecture(
        layers("2*plain, other", plain="", other="{attention: {window: 5, kv_heads: 6}, position: {base: 70}}")
    )


def shape(text: str) -> list[str]:
    """What a module consists of at its top level, docstrings and values aside."""
    body = ast.parse(text).body
    assert isinstance(body[0], ast.Expr), "a docstring comes first"
    assert isinstance(body[0].value, ast.Constant)
    names = []
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.append(f"{type(node).__name__} {node.name}")
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.append(f"Assign {name}")
            case ast.Import() | ast.ImportFrom():
                names.append(ast.unparse(node))
            case _:
                names.append(type(node).__name__)
    return names


def docstring(text: str) -> str:
    return ast.get_docstring(ast.parse(text), clean=False) or ""


# ---------------------------------------------------------------- the language refuses it


@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
@pytest.mark.parametrize("field", ["name", "source"])
def test_labels_are_refused(field: str, text: str) -> None:
    compile_text(BASE, overrides=[f"{field}=harmless"])
    with pytest.raises(SpecError) as caught:
        compile_text(BASE, overrides=[f"{field}={quoted(text)}"])
    assert [(d.code, d.path) for d in caught.value.diagnostics] == [("E104", field)]


@pytest.mark.parametrize("text", HOSTILE, ids=IDS)
def test_names_of_kinds_are_refused(text: str) -> None:
    def spec(kind: str) -> str:
        return BASE.replace("layers: 2\n", f"layers: {{count: 2, kinds: {{{kind}: null}}, pattern: 2*harmless}}\n")

    compile_text(spec("harmless"))
    with pytest.raises(SpecError) as caught:
        compile_text(spec(quoted(text)))
    assert {d.code for d in caught.value.diagnostics} == {"E104"}


def test_half_a_surrogate_is_no_text() -> None:
    with pytest.raises(SpecError) as caught:
        compile_text(BASE + 'source: "\\ud800"\n')
    assert [d.code for d in caught.value.diagnostics] == ["E001"]


# ---------------------------------------------------------------- and an Architecture that has it anyway does not leak


def renamed(built: Architecture, names: dict[str, str]) -> Architecture:
    def layer(old: Layer) -> Layer:
        return replace(old, kind=names.get(old.kind, old.kind))

    return replace(built, layers=tuple(map(layer, built.layers)))


@pytest.mark.parametrize("text", [*HOSTILE, "\ud800"], ids=[*IDS, "surrogate"])
def test_labels_stay_text(text: str) -> None:
    built = architecture()
    harmless, hostile = generate(built), generate(replace(built, name=text, source=text))
    assert shape(hostile) == shape(harmless)
    assert docstring(hostile) == docstring(harmless).replace("combination", text, 1)


@pytest.mark.parametrize("text", [*HOSTILE, "\ud800", "", "1", "+"], ids=[*IDS, "surrogate", "empty", "digit", "sign"])
def test_names_of_kinds_stay_text(tmp_path: Path, text: str) -> None:
    """What could not be a name is numbered instead."""
    built = of_two_kinds()
    hostile = generate(renamed(built, {"plain": text}))
    assert shape(hostile) == shape(generate(renamed(built, {"plain": "kind1", "other": "kind2"})))
    model = import_text(hostile, tmp_path).Model()
    assert model(torch.tensor([[1, 2, 3]])).shape == (1, 3, 211)


def test_another_shape_is_seen() -> None:
    """The twin that fails: a name that is pasted as it is."""
    text = generate(architecture())
    assert shape(text.replace("combination: a decoder", 'x"""\nraise SystemExit\n""": a decoder')) != shape(text)
