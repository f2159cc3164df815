"""What a run found, as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from archc.render.findings import NOT_TRIED, RULES, findings, holds, summary
from archc.spec.diagnostics import Level
from tests.render.documents import failing, flawless, hidden, passing, unloadable


def said(document: dict[str, Any], level: Level, *, strict: bool = False) -> list[str]:
    return [one.message for one in findings(document, strict=strict) if one.level is level]


def test_what_fails_is_an_error_and_what_is_not_seen_a_note() -> None:
    assert said(failing(), Level.ERROR) == [
        "norm.eps is declared as 1e-05, and 1e-06 in config.json",
        "position.base is declared as 5300, and null in config.json, by default, on layers 1, 2",
        "the port behaves exactly as with position.pairing = interleaved (declared: half), on layers 1, 2 only; "
        "rotate the pairs (i, i + d/2)",
        "cache size does not hold: 1,344 declared, 1,152 in the reference",
    ]
    assert said(failing(), Level.WARNING) == [
        "model.norm.weight (mean 0.02): declared plain, but these weights look one_plus"
    ]
    assert said(failing(), Level.NOTE) == [
        "or: the port behaves exactly as with position.base = 10000 (declared: 5300); take the base from the config",
        "a port with position.base = 10000 would pass",
        "norm.eps is not seen: below the last digit on these weights",
    ]


def test_both_of_a_pair_are_errors() -> None:
    document = failing()
    for one, other in (("pairing", "base"), ("base", "pairing")):
        entry = next(entry for entry in document["diagnosis"] if entry["field"] == f"position.{one}")
        entry |= {"explains": "position.pairing = interleaved and position.base = 10000"}
        entry |= {"together_with": [f"position.{other}"]}
    found = [one for one in findings(document) if one.rule == "diagnosis"]
    assert [(one.level, one.field) for one in found] == [
        (Level.ERROR, "position.pairing"),
        (Level.ERROR, "position.base"),
    ]


def test_without_a_diagnosis_the_deviation_itself_is_told() -> None:
    document = failing() | {"diagnosis": [], "diagnosis_note": "nothing explains it"}
    where = "first divergence: layers.1.out, 143 times the floor there"
    assert f"{document['verdict']}; {where}; diagnosis: nothing explains it" in said(document, Level.ERROR)
    document |= {"first_divergence": None, "divergence_note": "not traced", "diagnosis_note": None}
    assert f"{document['verdict']}; first divergence: not traced" in said(document, Level.ERROR)


def test_what_layers_show_alone_is_a_deviation() -> None:
    assert said(hidden(), Level.ERROR) == ["the logits hide it, but layer 2 computes something else"]
    document = hidden()
    document["blockwise"]["passed"] = True
    assert said(document, Level.ERROR) == []


def test_the_summary_says_everything_once() -> None:
    document = failing() | {"diagnosis": [], "diagnosis_note": "nothing explains it", "static": []}
    assert summary(document) == [
        f"tiny: FAIL: {document['verdict']}",
        "cache size does not hold: 1,344 declared, 1,152 in the reference",
        "first divergence: layers.1.out, 143 times the floor there",
        "diagnosis: nothing explains it",
    ]
    assert summary(passing()) == [f"tiny: PASS: {passing()['verdict']}"]
    assert summary(passing(), strict=True) == [
        f"tiny: FAIL: {passing()['verdict_strictly']}",
        "a port with position.base = 10000 would pass",
        "norm.eps is not seen: below the last digit on these weights",
    ]


def test_a_passing_port_has_no_errors() -> None:
    assert said(passing(), Level.ERROR) == []
    assert findings(flawless()) == findings(flawless(), strict=True) == []


def test_tensors_that_differ_alike_are_one_finding() -> None:
    assert said(unloadable(), Level.ERROR) == [
        "model.layers.N.self_attn.q_proj.bias is declared and not stored (2 tensors)",
        "model.extra.weight is stored and not declared",
        "model.layers.N.self_attn.k_proj.weight is declared as [48, 72], and stored as [32, 72] (3 tensors)",
    ]


@pytest.mark.parametrize("lack", ["faults", "fields", "trials"])
def test_strict(lack: str) -> None:
    """Each of the three that a strict run asks for besides, alone: it is what the errors are about."""
    document = flawless() | {"passed_strictly": False}
    match lack:
        case "trials":
            document["faults"] = None
        case "faults":
            document["faults"]["survived"] = passing()["faults"]["survived"]
        case _:
            document["fields"]["blind"] = passing()["fields"]["blind"]
    assert holds(document)
    assert not holds(document, strict=True)
    assert said(document, Level.ERROR) == []
    assert (
        said(document, Level.ERROR, strict=True)
        == {
            "faults": ["a port with position.base = 10000 would pass"],
            "fields": ["norm.eps is not seen: below the last digit on these weights"],
            "trials": [NOT_TRIED],
        }[lack]
    )


def test_a_failing_port_fails_either_way() -> None:
    assert holds(flawless(), strict=True)
    assert not holds(failing())
    assert not holds(failing(), strict=True)


def test_every_rule_is_explained() -> None:
    used = {
        one.rule for document in (failing(), unloadable(), failing() | {"diagnosis": []}) for one in findings(document)
    }
    assert used == set(RULES)
