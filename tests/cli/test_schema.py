"""`archc schema`: accepts every shipped spec, and refuses what `archc check` refuses."""

from typing import Any

import jsonschema
import pytest

from archc import resources
from archc.architecture import compile_text
from archc.spec.diagnostics import SpecError
from archc.spec.load import shipped_names
from archc.spec.source import parse, read
from tests.analysis.specs import MIXTURE, PLAIN, WINDOWED
from tests.cli.runner import archc
from tests.tiny import TINY


@pytest.fixture(scope="module")
def schema() -> Any:
    return archc("schema").json


def complaints(schema: Any, text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(parse(text, "x").plain())]


def test_is_a_schema(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert archc("schema").err == ""


def test_definitions_have_names_of_their_own(schema: Any) -> None:
    assert [name for name in schema["$defs"] if not name.isalnum()] == []  # pydantic tells namesakes apart by modules


@pytest.mark.parametrize("name", shipped_names())
def test_accepts_shipped_specs(schema: Any, name: str) -> None:
    jsonschema.validate(read(resources.folder("specs") / f"{name}.yaml").plain(), schema)


@pytest.mark.parametrize("text", [PLAIN, MIXTURE, WINDOWED, *(tiny.text() for tiny in TINY)])
def test_accepts_other_specs(schema: Any, text: str) -> None:
    compile_text(text)
    assert complaints(schema, text) == []


UNIFORM = [
    ("name: small\n", ""),
    ("name: small", "name: '-small'"),
    ("hidden_size: 10", "hidden_size: 0"),
    ("hidden_size: 10", "hidden_size: ten"),
    ("dtype: bfloat16", "dtype: bf16"),
    ("tied: false", "tied: 0"),
    ("layers: 2", "layers: 2\nextra: 1"),
    ("layers: 2", "layers: two"),
    ("eps: 1.0e-5", "epsilon: 1.0e-5"),
    ("eps: 1.0e-5", "eps: 0"),
    ("eps: 1.0e-5", "eps: null"),
    ("kind: rope", "kind: rotary"),
    ("kind: rope, base", "base"),
    ("base: 10000", "base: 10000, scaling: {kind: linear}"),
    ("heads: 3, ", ""),
    ("heads: 3", "heads: null"),
    ("heads: 3", "heads: 3, bias: [q, x]"),
    ("kind: gated, ", ""),
    ("width: 6", "width: 6, top_k: 2"),
    ("position: {kind: rope, base: 10000}\n", ""),
]


@pytest.mark.parametrize(("old", "new"), UNIFORM)
def test_refuses_what_cannot_be_built(schema: Any, old: str, new: str) -> None:
    text = PLAIN.replace(old, new)
    assert text != PLAIN
    with pytest.raises(SpecError):
        compile_text(text)
    assert complaints(schema, text)


KINDS = [
    ("window: 3", "windw: 3"),
    ("window: 3", "window: 0"),
    ("position: {base: 100}", "position: {base: -1}"),
    ("position: {base: 100}", "posittion: {base: 100}"),
    ("local:", "Local:"),
    ("count: 6", "count: six"),
    ("  pattern: 5*local, global", ""),
]


@pytest.mark.parametrize(("old", "new"), KINDS)
def test_refuses_wrong_kinds_of_layer(schema: Any, old: str, new: str) -> None:
    text = WINDOWED.replace(old, new)
    assert text != WINDOWED
    with pytest.raises(SpecError):
        compile_text(text)
    assert complaints(schema, text)


@pytest.mark.parametrize(
    "kind",
    [
        "null",
        "{}",
        "{attention: {window: null}}",
        "{position: null}",
        "{position: {scaling: {factor: 2}}}",
        "{ffn: {kind: mlp}}",
        "{ffn: {width: 7}}",
    ],
)
def test_kinds_state_only_what_differs(schema: Any, kind: str) -> None:
    assert complaints(schema, WINDOWED.replace("global: null", f"global: {kind}")) == []


def test_kinds_can_complete_the_sections(schema: Any) -> None:
    """The twin of the refusals: where layers differ, a section need not be whole by itself."""
    text = WINDOWED.replace("heads: 3, ", "").replace("window: 3", "window: 3, heads: 3")
    text = text.replace("global: null", "global: {attention: {heads: 3}}")
    compile_text(text)
    assert complaints(schema, text) == []


BLOCK = PLAIN + "block: [{attention: {}, norm: {eps: 1e-3}}, {ffn: {width: 3}, shared: end, norm: null}]\n"


@pytest.mark.parametrize(
    "text", [BLOCK, PLAIN + "mixer: null\n", PLAIN.replace("{heads: 3, kv_heads: 1, head_dim: 4}", "null")]
)
def test_accepts_other_branches(schema: Any, text: str) -> None:
    compile_text(text)
    assert complaints(schema, text) == []


def test_accepts_the_branches_of_a_kind(schema: Any) -> None:
    text = WINDOWED.replace("global: null", "global: {block: [{attention: {}}, {ffn: {}}, {ffn: {}}]}")
    compile_text(text)
    assert complaints(schema, text) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("width: 3", "widht: 3"),
        ("width: 3", "width: 0"),
        ("shared: end", "shared: End"),
        ("shared: end", "shard: end"),
        ("{attention: {}, norm: {eps: 1e-3}}", "3"),
        ("attention: {}", "attention: null"),
        ("attention: {}", "attention: {kind: other}"),
    ],
)
def test_refuses_wrong_branches(schema: Any, old: str, new: str) -> None:
    text = BLOCK.replace(old, new)
    assert text != BLOCK
    with pytest.raises(SpecError):
        compile_text(text)
    assert complaints(schema, text)


def test_every_field_is_described(schema: Any) -> None:
    assert [name for name, field in schema["properties"].items() if not field.get("description")] == []
