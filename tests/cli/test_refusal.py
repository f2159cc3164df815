"""What cannot be generated yet: refused by generate and validate, sized by report and check."""

from pathlib import Path

import pytest

from tests.analysis.specs import PLAIN
from tests.cli.runner import archc


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.yaml"
    path.write_text(PLAIN, encoding="utf-8")
    return str(path)


UNSAID = ("--set", "undeclared=[a router that remembers]")


@pytest.mark.parametrize("command", ["generate", "validate"])
def test_is_refused_by_name(spec: str, command: str) -> None:
    done = archc(command, spec, *UNSAID, *(["--weights", "nowhere"] if command == "validate" else []))
    assert (done.code, done.out) == (1, "")
    assert "E210: small cannot be generated yet, because of undeclared: a router that remembers;" in done.err


def test_is_sized_all_the_same(spec: str) -> None:
    done = archc("report", spec, *UNSAID, "--json")
    assert (done.code, done.json["params"]["total"]) == (0, archc("report", spec, "--json").json["params"]["total"])


def test_what_can_be_generated_is_not_refused(spec: str) -> None:
    assert archc("generate", spec).code == 0
    assert archc("validate", spec, "--weights", "nowhere").code == 3
