"""What README and `archc list --families` say was measured: all of it, with these versions, and nothing else."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

from archc.families import family, known_families
from benchmarks.coverage import BEGIN, END, MEASURED, README, compare, table
from tests.families.gate_case import Outcome
from tests.families.zoo import CASES

GENERATED = {name for name in known_families() if family(name).rules}


def test_every_case_of_every_generated_family_was_measured() -> None:
    families = json.loads(MEASURED.read_text(encoding="utf-8"))["families"]
    assert set(families) == GENERATED
    for name, entry in families.items():
        cases = [case.name for case in CASES if case.model_type == name]
        assert entry["cases"] == len(cases), name
        assert entry["passed"] == len(cases) - len(entry["refused"]), name
        assert set(entry["refused"]) <= set(cases)
        assert entry["planted"] > 8, name
        assert max(entry["full_pass"] or 0, entry["cache"] or 0, entry["padded"] or 0) <= 8, name


def test_with_the_versions_that_are_installed() -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    pinned = (Path(MEASURED).parent.parent / "constraints.txt").read_text()
    for name in ("transformers", "torch"):
        assert f"{name}=={measured[name]}" in pinned
        assert importlib.metadata.version(name).split("+")[0] == measured[name]


def test_the_readme_shows_it() -> None:
    text = README.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table()


def test_what_falls_back_is_found() -> None:
    before = {"llama": {"refused": {"llama-old": ["x"]}}}
    good = Outcome("llama", "llama", passed=True)
    known = Outcome("llama-old", "llama", refused=("x",))
    lost = Outcome("llama-new", "llama", refused=("x",))
    failed = Outcome("llama-bias", "llama", failure="beyond the floor")
    assert compare([good, known, lost, failed], before) == [lost, failed]
