"""The files that `archc validate` writes for continuous integration, and its verdict as a log holds it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from archc.faults import catalogue
from tests.cli.runner import Done, archc
from tests.pages import Page
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
REPORTS = ("gate.xml", "gate.sarif", "certificate.json", "gate.json", "gate.html")


FEW = catalogue.CATALOGUE[:2]
CACHED = tuple(one for one in catalogue.CATALOGUE if one.id == "cache.positions")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoint) -> Path:
    """A repository with a spec in it; what is written goes there too."""
    monkeypatch.setattr(catalogue, "CATALOGUE", FEW)  # a gate that is quick
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    Path("spec.yaml").write_text(BY_NAME["llama-default"].text())
    return checkpoint("llama-default")


def validate(weights: Path, *more: str) -> Done:
    files: tuple[str, ...] = (
        "--junit",
        "gate.xml",
        "--sarif",
        "gate.sarif",
        "--certificate",
        "certificate.json",
        "--json",
        "gate.json",
    )
    files += ("--html", "gate.html")
    return archc("validate", "spec.yaml", "--weights", str(weights), *files, *more)


def page_of_the_run() -> Page:
    """The page, after a look at whether it holds what the JSON file does."""
    page = Page.read(Path("gate.html"))
    document = json.loads(Path("gate.json").read_text())
    del document["generated"]
    assert page.document() == document
    return page


def outcomes() -> tuple[int, list[str], str, bool]:
    """Failed cases of the JUnit file, rules of SARIF's errors, the certificate's title, and what the JSON says."""
    suite = ElementTree.parse("gate.xml").getroot()[0]
    (run,) = json.loads(Path("gate.sarif").read_text())["runs"]
    title = json.loads(Path("certificate.json").read_text())["title"]
    passed = json.loads(Path("gate.json").read_text())["passed"]
    errors = [one["ruleId"] for one in run["results"] if one["level"] == "error"]
    return int(suite.attrib["failures"]), errors, title, passed


def test_reports_of_a_port_that_holds_and_then_of_one_that_does_not(target: Path) -> None:
    """The second run replaces what the first one wrote, without --force."""
    done = validate(target)
    assert (done.code, done.err) == (0, "")
    assert outcomes() == (0, [], "Certificate of parity", True)
    files = {one["name"]: one for one in json.loads(Path("certificate.json").read_text())["weights"]}
    content = (target / "model.safetensors").read_bytes()
    assert files["model.safetensors"]["sha256"] == hashlib.sha256(content).hexdigest()

    page = page_of_the_run()
    assert page.all("p", class_="verdict pass")
    assert page.all("circle", data_mistake="")

    done = validate(target, "--set", "position.pairing=interleaved")
    assert (done.code, done.err) == (1, "")
    page = page_of_the_run()
    assert page.all("p", class_="verdict fail")
    assert [one.words for one in page.all("text", class_="words")] == ["first: layers.0.mixer.q"]
    failures, rules, title, passed = outcomes()
    assert failures >= 7
    assert "config" in rules
    assert {"parity", "fault/position.pairing"} & set(rules)
    assert (title, passed) == ("Record of a failed validation; it certifies nothing", False)


def test_a_log_has_plain_lines_and_ends_with_the_verdict(target: Path) -> None:
    done = validate(target, "--set", "position.pairing=interleaved")
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[-1].startswith("  FAIL: ")
    assert all(line.isprintable() for line in lines)
    assert all(len(line) <= 100 for line in lines[:-1])  # the verdict itself is one line, however long


@pytest.mark.parametrize("name", REPORTS)
def test_a_file_of_somebody_else_is_refused_before_the_run(target: Path, name: str) -> None:
    Path(name).write_text("mine")
    done = validate(target)
    assert done.code == 2
    assert "exists, and archc did not write it" in done.err
    assert done.out == ""
    assert Path(name).read_text() == "mine"
    assert not [other for other in REPORTS if other != name and Path(other).exists()]


def test_a_file_that_was_changed_is_refused(target: Path) -> None:
    assert validate(target).code == 0
    for name in REPORTS:
        text = Path(name).read_text()
        Path(name).write_text(text.replace("llama", "lama"))
        assert validate(target).code == 2
        Path(name).write_text(text, newline="\r\n")  # as version control may write it
    assert validate(target).code == 0


def test_a_run_without_a_verdict_leaves_no_report_of_an_earlier_one(target: Path) -> None:
    assert validate(target).code == 0
    done = validate(target.parent / "absent")
    assert done.code == 3
    suite = ElementTree.parse("gate.xml").getroot()[0]
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0")
    (run,) = json.loads(Path("gate.sarif").read_text())["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    page = Page.read(Path("gate.html"))
    assert [one.words for one in page.all("h1")] == ["spec.yaml: no verdict"]
    assert page.outside() == []
    assert json.loads(Path("certificate.json").read_text())["passed"], "it says what it was made of, and stays"


def test_a_spec_with_errors_is_reported_as_such(target: Path) -> None:
    Path("spec.yaml").write_text(BY_NAME["llama-default"].text().replace("kv_heads", "kv_head"))
    assert validate(target).code == 1
    assert int(ElementTree.parse("gate.xml").getroot()[0].attrib["failures"]) >= 1
    (run,) = json.loads(Path("gate.sarif").read_text())["runs"]
    assert "E101" in [one["ruleId"] for one in run["results"]]


def test_strict_fails_a_run_that_did_not_see_everything(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that takes nothing but tokens can neither be padded nor decode."""
    Path("port.py").write_text(
        "import transformers\n\n"
        "def load(weights, dtype):\n"
        "    model = transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=dtype).eval()\n"
        "    return lambda input_ids: model(input_ids, use_cache=False).logits\n"
    )
    monkeypatch.setattr(catalogue, "CATALOGUE", CACHED)
    done = validate(target, "--port", "port.py:load")
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("  PASS: ")
    found = json.loads(Path("certificate.json").read_text())
    digest = hashlib.sha256(Path("port.py").read_bytes()).hexdigest()
    assert found["port"]["file"]["sha256"] == digest
    assert found["fields"]["blind"]

    done = validate(target, "--port", "port.py:load", "--strict")
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("  FAIL: every probe holds, but ")
    failures, rules, title, passed = outcomes()
    assert failures > 0
    assert "survived" in rules
    assert (title, passed) == ("Record of a failed validation; it certifies nothing", True)


def test_a_port_s_name_is_words_in_the_page(target: Path) -> None:
    folder = Path("<script>alert(1)<") / "script>"
    folder.mkdir(parents=True)
    (folder / "port.py").write_text(
        "import transformers\n\n"
        "def load(weights, dtype):\n"
        "    return transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=dtype).eval()\n"
    )
    assert validate(target, "--port", f"{folder}/port.py:load").code == 0
    page = page_of_the_run()
    assert page.outside() == []
    assert "<script>alert(1)</script>/port.py:load" in page.all("p", class_="muted")[0].words
