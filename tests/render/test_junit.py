"""JUnit XML, against the schema that Jenkins' xUnit plugin publishes (junit-10.xsd), which pytest keeps to as well."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from archc.errors import IncompleteError
from archc.render.findings import NOT_TRIED
from archc.render.junit import error_junit, gate_junit
from archc.spec.diagnostics import Diagnostic, Level, Span, SpecError
from tests.render.documents import failing, hidden, passing, unloadable

# Element → the attributes that it must have, those that it may have besides, and the elements that it may hold.
_REASON: tuple[set[str], set[str], set[str]] = (set(), {"type", "message"}, set())
ALLOWED: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": _REASON,
    "error": _REASON,
    "skipped": _REASON,
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def require_valid(element: ElementTree.Element) -> None:
    needed, more, inside = ALLOWED[element.tag]
    assert needed <= element.attrib.keys() <= needed | more, element.tag
    assert {child.tag for child in element} <= inside, element.tag
    assert TIME.fullmatch(element.get("time", ""))
    for child in element:
        require_valid(child)


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    require_valid(root)
    suites = [root, *root]
    for suite in suites:
        cases = list(suite.iter("testcase"))
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
        assert int(suite.attrib["errors"]) == sum(case.find("error") is not None for case in cases)
    return root


def cases(text: str) -> dict[str, tuple[str, str]]:
    """Group and name of every case → what came of it and the message."""
    found = {}
    for case in parsed(text).iter("testcase"):
        child = next((one for one in case if one.tag in {"failure", "error", "skipped"}), None)
        name = f"{case.attrib['classname']}: {case.attrib['name']}"
        assert name not in found, "a report tells cases apart by name"
        found[name] = ("passed", "") if child is None else (child.tag, child.get("message", ""))
    return found


def test_every_kind_of_case_of_a_passing_run() -> None:
    assert cases(gate_junit(passing())) == {
        "tiny.run: load": ("passed", ""),
        "tiny.run: reference": ("passed", ""),
        "tiny.run: port": ("passed", ""),
        "tiny.checkpoint: tensors": ("passed", ""),
        "tiny.checkpoint: config.json": ("passed", ""),
        "tiny.probes: 8 tokens": ("passed", ""),
        "tiny.probes: 64 tokens": ("passed", ""),
        "tiny.invariants: causality": ("passed", ""),
        "tiny.invariants: cache size": ("passed", ""),
        "tiny.faults: mutation score": ("skipped", "10 of 11 mistakes that this model can have would be seen"),
        "tiny.fields: attention.heads": ("passed", ""),
        "tiny.fields: position.pairing": ("passed", ""),
        "tiny.fields: norm.eps": ("skipped", "not seen: below the last digit on these weights"),
    }


def test_what_fails() -> None:
    found = {name: message for name, (outcome, message) in cases(gate_junit(failing())).items() if outcome == "failure"}
    assert found == {
        "tiny.checkpoint: config.json": "norm.eps is declared as 1e-05, and 1e-06 in config.json (and 1 more)",
        "tiny.probes: 64 tokens": "∞ times the noise floor; the bound is 8",
        "tiny.invariants: cache size": "1,344 declared, 1,152 in the reference",
        "tiny.diagnosis: position.pairing": "the port behaves exactly as with position.pairing = interleaved "
        "(declared: half), on layers 1, 2 only",
    }


def test_a_failure_has_its_figures() -> None:
    (failure,) = (
        case.find("failure")
        for case in parsed(gate_junit(failing())).iter("testcase")
        if case.attrib["name"] == "64 tokens"
    )
    assert failure is not None
    lines = str(failure.text).splitlines()
    assert "floor: max_abs 3.1e-05, rms 2.6e-06" in lines
    assert "deviation: max_abs not finite, rms not finite, kl not finite, top1 0.5" in lines
    assert "first divergence: layers.1.out, 143 times the floor there" in lines


def test_what_is_skipped_fails_a_strict_run() -> None:
    plain, strict = cases(gate_junit(passing())), cases(gate_junit(passing(), strict=True))
    skipped = {name for name, (outcome, _) in plain.items() if outcome == "skipped"}
    assert skipped == {"tiny.faults: mutation score", "tiny.fields: norm.eps"}
    assert {name for name, (outcome, _) in strict.items() if outcome == "failure"} == skipped


def test_layers_judged_alone() -> None:
    document = hidden()
    name = "tiny.layers: judged alone"
    assert cases(gate_junit(document))[name] == (
        "failure",
        "layers.2.mixer.q is the first point beyond; the bound is 4",
    )
    assert "layers.2.mixer.q: 31.50 times its floor\nlayers.2.out: ∞ times its floor" in gate_junit(document)
    document["blockwise"]["passed"] = True
    assert cases(gate_junit(document))[name] == ("passed", "")


def test_where_no_mistake_could_be_planted() -> None:
    document = passing() | {"faults": None}
    assert cases(gate_junit(document))["tiny.faults: mutation score"] == ("skipped", NOT_TRIED)
    assert cases(gate_junit(document, strict=True))["tiny.faults: mutation score"] == ("failure", NOT_TRIED)
    failed = failing() | {"faults": None}
    assert "tiny.faults: mutation score" not in cases(gate_junit(failed, strict=True)), "none is, where a port fails"


def test_a_checkpoint_that_does_not_fit() -> None:
    found = cases(gate_junit(unloadable()))
    assert found == {
        "tiny.checkpoint: tensors": (
            "failure",
            "model.layers.N.self_attn.q_proj.bias is declared and not stored (2 tensors) (and 2 more)",
        ),
        "tiny.checkpoint: config.json": ("skipped", "not compared"),
    }


def test_times_are_those_of_the_run() -> None:
    root = parsed(gate_junit(passing()))
    assert root.attrib["time"] == "4.000"
    assert sum(float(case.attrib["time"]) for case in root.iter("testcase")) == 4.0


def test_a_run_without_a_verdict() -> None:
    error = IncompleteError("the weights are not here yet", "run `archc fetch tiny`")
    assert cases(error_junit("tiny", error)) == {"tiny.run: verdict": ("error", "the weights are not here yet")}
    wrong = Diagnostic("E101", Level.ERROR, "unknown key 'x'", "remove it", Span("a.yaml", 3, 1, 1, "x: 1"), "x")
    note = Diagnostic("N501", Level.NOTE, "a wall", "", None, "position")
    assert cases(error_junit("tiny", SpecError([wrong, note]))) == {"tiny.spec: E101 x": ("failure", "unknown key 'x'")}


@pytest.mark.parametrize("text", ["a\x00b", "a\x1b[31mb", "]]>", "<b>&", "a\ufffeb", "\ud800", "a\nb"])
def test_names_from_outside_break_nothing(text: str) -> None:
    """A tensor or a spec may have any name; XML 1.0 has no place for most control characters."""
    document: dict[str, Any] = unloadable()
    document["spec"]["name"] = text
    document["manifest"]["missing"] = [text]
    assert len(cases(gate_junit(document))) == 2


def test_the_schema_refuses() -> None:
    """So that the tests above could have failed."""
    good = gate_junit(passing())
    for old, new in (
        ("classname=", "class="),
        ("<properties>", "<properties><testcase name='x'/>"),
        ("system-out", "out"),
    ):
        with pytest.raises((AssertionError, KeyError)):
            parsed(good.replace(old, new))
    with pytest.raises(AssertionError):
        parsed(good.replace('failures="0"', 'failures="3"'))
