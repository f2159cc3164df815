"""SARIF: valid by the published schema, and every finding at the line of the spec that it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from archc.architecture import Compiled, compile_spec, compile_text
from archc.errors import IncompleteError
from archc.render.findings import Finding
from archc.render.places import artifact, place_of
from archc.render.sarif import check_sarif, error_sarif, gate_sarif
from archc.spec.diagnostics import Diagnostic, Level, Span, SpecError
from tests.render.documents import failing, flawless, passing, unloadable

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
PLAIN = """archc: 1
name: tiny
family: llama
vocab_size: 211
hidden_size: 72
context: 96
dtype: float32
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-5}
position:
  kind: rope
  base: 5300
  pairing: half
attention: {heads: 6, kv_heads: 2, head_dim: 16, bias: [q, k, v]}
ffn: {kind: gated, activation: silu, width: 100}
layers: 3
"""
KINDS = PLAIN.replace("family: llama", "family: gemma3_text").replace(", bias: [q, k, v]", "").replace(
    "layers: 3",
    """layers:
  count: 3
  kinds:
    local: {attention: {window: 7}, position: {base: 700}}
    global: null
  pattern: local, global, local""",
)  # fmt: skip


def results(log: Mapping[str, Any]) -> list[tuple[str, str, str, int, int | None]]:
    """Rule, level, file, line and column of every result of a log, which is held against the schema."""
    assert list(Draft4Validator(SCHEMA).iter_errors(log)) == []
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(
        dict.fromkeys(result["ruleId"] for result in run["results"])
    )
    found = []
    for result in run["results"]:
        (place,) = (one["physicalLocation"] for one in result["locations"])
        region = place["region"]
        uri = place["artifactLocation"]["uri"]
        found.append((result["ruleId"], result["level"], uri, region["startLine"], region.get("startColumn")))
    return found


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "models" / "my specs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spec(folder: Path, text: str = PLAIN, *overrides: str) -> Compiled:
    file = folder / "models" / "my specs" / "tiny.yaml"
    file.write_text(text)
    return compile_spec(str(file), overrides)


def test_findings_are_where_their_fields_are(repository: Path) -> None:
    file = "models/my%20specs/tiny.yaml"
    assert results(gate_sarif(failing(), spec(repository))) == [
        ("config", "error", file, 9, 28),
        ("config", "error", file, 12, 9),
        ("norm-weights", "warning", file, 9, 1),
        ("fault/position.pairing", "error", file, 13, 12),
        ("fault/position.base", "note", file, 12, 9),
        ("invariant", "error", file, 1, None),
        ("survived", "note", file, 12, 9),
        ("blind", "note", file, 9, 28),
    ]


def test_shapes_are_where_their_sections_are(repository: Path) -> None:
    """`kv_heads` decides on the rows of k; the field itself is not known, its section is."""
    file = "models/my%20specs/tiny.yaml"
    assert results(gate_sarif(unloadable(), spec(repository))) == [
        ("tensors", "error", file, 14, 1),
        ("tensors", "error", file, 1, None),
        ("tensors", "error", file, 14, 1),
    ]


def test_strict_makes_errors_of_notes(repository: Path) -> None:
    compiled = spec(repository)
    plain, strict = results(gate_sarif(passing(), compiled)), results(gate_sarif(passing(), compiled, strict=True))
    assert [level for _, level, *_ in plain] == ["note", "note"]
    assert [level for _, level, *_ in strict] == ["error", "error"]


def test_a_run_that_holds_in_all_has_no_results(repository: Path) -> None:
    log = gate_sarif(flawless(), spec(repository), strict=True)
    assert results(log) == []
    assert log["runs"][0]["properties"]["passed"] is True


@pytest.mark.parametrize(
    ("field", "layer", "line", "text"),
    [
        ("position.base", None, 12, "5300"),
        ("position.base", 1, 12, "5300"),
        ("position.base", 0, 19, "700"),
        ("attention.window", None, 19, "7"),
        ("attention.window", 2, 19, "7"),
        ("layers.kinds.local.attention.window", None, 19, "7"),
        ("attention.scale", None, 14, "attention"),  # not stated: its section
        ("ffn", None, 15, "ffn"),
        ("mixer.state", None, 1, ""),
        ("cache", None, 1, ""),
        ("", None, 1, ""),
    ],
)
def test_places(repository: Path, field: str, layer: int | None, line: int, text: str) -> None:
    """A field of one layer is where the layer's kind states it, if it does."""
    span = place_of(Finding("blind", Level.NOTE, "", field, layer), spec(repository, KINDS))
    assert span.line == line
    assert span.text[span.column - 1 : span.column - 1 + span.length] == text or not text


def test_places_in_a_block(repository: Path) -> None:
    text = PLAIN.replace("attention: {", "block:\n  - attention: {").replace("ffn: {", "  - ffn: {")
    span = place_of(Finding("blind", Level.NOTE, "", "attention.kv_heads"), spec(repository, text))
    assert (span.line, span.text[span.column - 1]) == (15, "2")


def test_what_an_option_says_is_in_no_file(repository: Path) -> None:
    """The place of the section around it stands for it, and the first line where the section is the option's too."""
    finding = Finding("blind", Level.NOTE, "", "position.pairing")
    span = place_of(finding, spec(repository, PLAIN, "position.pairing=interleaved"))
    assert (Path(span.file).name, span.line, span.column) == ("tiny.yaml", 10, 1)
    finding = Finding("blind", Level.NOTE, "", "logits.scale")
    span = place_of(finding, spec(repository, PLAIN, "logits={scale: 0.5}"))
    assert (Path(span.file).name, span.line) == ("tiny.yaml", 1)


def test_names_of_files(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert artifact("models/x.yaml").uri == "models/x.yaml"
    assert artifact(str(repository / "models" / "x.yaml")).uri == "models/x.yaml"
    assert artifact(str(repository.parent / "elsewhere.yaml")).uri == "elsewhere.yaml"
    assert artifact("models, imported").uri == "models/config.json"
    assert artifact(compile_spec("ladder/rope").loaded.root.span.file).uri == "specs/ladder/rope.yaml"
    monkeypatch.chdir(repository / "models")
    assert artifact("x.yaml").uri == "models/x.yaml"


def test_places_in_an_imported_spec_are_none_in_its_config(repository: Path) -> None:
    compiled = compile_text(PLAIN, "models, imported")
    places = {(uri, line, column) for _, _, uri, line, column in results(gate_sarif(failing(), compiled))}
    assert places == {("models/config.json", 1, None)}


def test_no_place_names_a_folder_of_this_machine(repository: Path) -> None:
    for document in (failing(), unloadable()):
        assert str(repository) not in json.dumps(gate_sarif(document, spec(repository)))
    shipped = gate_sarif(failing(), compile_spec("gpt2"))
    assert {uri for _, _, uri, *_ in results(shipped)} == {"specs/gpt2.yaml"}


def test_diagnostics_have_their_places_and_pages(repository: Path) -> None:
    Path("bad.yaml").write_text(PLAIN.replace("kv_heads: 2", "kv_head: 2"))
    with pytest.raises(SpecError) as raised:
        compile_spec("bad.yaml")
    log = check_sarif([("bad.yaml", raised.value.diagnostics)])
    assert ("E101", "error", "bad.yaml", 14, 23) in results(log)
    help_text = log["runs"][0]["tool"]["driver"]["rules"][0]["help"]["markdown"]
    assert help_text.startswith("## What it means")
    assert results(error_sarif("bad.yaml", raised.value)) == results(log)


def test_a_diagnostic_of_an_option_is_at_the_first_line(repository: Path) -> None:
    Path("tiny.yaml").write_text(PLAIN)
    with pytest.raises(SpecError) as raised:
        compile_spec("tiny.yaml", ["attention.heads=0"])
    assert all(found[2:] == ("tiny.yaml", 1, None) for found in results(error_sarif("tiny.yaml", raised.value)))


def test_a_run_that_could_not_be_completed_says_so() -> None:
    log = error_sarif("tiny", IncompleteError("no weights", "fetch them"))
    assert results(log) == []
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "no weights; fetch them"


def test_columns_count_characters(repository: Path) -> None:
    """As spans do: 𝔞 is one of them, and two units of UTF-16."""
    span = Span("x.yaml", 1, 8, 1, "'𝔞ü': {b: 1}")
    log = check_sarif([("x.yaml", [Diagnostic("E101", Level.ERROR, "unknown", "", span)])])
    assert log["runs"][0]["columnKind"] == "unicodeCodePoints"
    assert results(log)[0][-1] == 8


def test_the_schema_refuses() -> None:
    """So that the tests above could have failed."""
    log = check_sarif([("x.yaml", [Diagnostic("E101", Level.ERROR, "unknown", "", None)])])
    results(log)
    for broken in ({**log, "generated": {}}, {**log, "version": "2"}, {**log, "runs": [{"results": []}]}):
        assert list(Draft4Validator(SCHEMA).iter_errors(broken))


def test_a_spec_from_a_text_has_a_place_too() -> None:
    assert results(gate_sarif(failing(), compile_text(PLAIN, "tiny.yaml")))
