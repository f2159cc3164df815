"""The pipeline for GitLab in the guide: well formed, and its lines run as written, with a pip that only takes notes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.test_imports import ROOT

GUIDE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
PIPELINE = yaml.safe_load(re.findall(r"```yaml\n(stages: .*?)```", GUIDE, re.DOTALL)[0])
# https://docs.gitlab.com/ci/yaml/: what of it is used here.
GLOBAL = {"stages", "variables", "default"}
JOB = {"stage", "before_script", "script", "artifacts"}

# pip takes notes; everything else is Python.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then shift 2; printf '%s\\n' "$*" >> "$NOTES"; else exec "{python}" "$@"; fi
"""
PORT = """
import transformers


def load(weights, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager").eval()
"""
WRONG = PORT.replace("weights, dtype=dtype", "weights, dtype=dtype, hidden_act='gelu'")


@dataclass(frozen=True)
class Ran:
    """How a job ended: its exit code, what it printed, and what it installed."""

    code: int
    log: str
    installed: list[str]


def run(name: str, folder: Path, port: str = PORT) -> Ran:
    """Runs a job in a repository that has what the guide's has, in one shell that ends at an error, as a runner."""
    job = PIPELINE[name]
    (folder / "specs").mkdir()
    shutil.copy(ROOT / "specs" / "tiny.yaml", folder / "specs" / "my-model.yaml")
    shutil.copytree(ROOT / "validators" / "weights" / "tiny", folder / "checkpoint")
    (folder / "ports").mkdir()
    (folder / "ports" / "my_port.py").write_text(port)
    programs, notes = folder / "bin", folder / "notes"
    programs.mkdir()
    notes.touch()
    for program, text in {
        "python": PYTHON.format(python=sys.executable),
        "archc": f'#!/bin/sh\nexec "{sys.executable}" -m archc "$@"\n',
    }.items():
        (programs / program).write_text(text)
        (programs / program).chmod(0o755)
    environment = os.environ | {
        "CI_PROJECT_DIR": str(folder),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "NOTES": str(notes),
    }
    environment |= {key: text.replace("$CI_PROJECT_DIR", str(folder)) for key, text in PIPELINE["variables"].items()}
    script = "\n".join([*job.get("before_script", []), *job["script"]])
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    return Ran(done.returncode, done.stdout + done.stderr, notes.read_text().splitlines())


def reports(name: str, folder: Path) -> list[Path]:
    """What the job hands on."""
    artifacts = PIPELINE[name]["artifacts"]
    return [folder / path for path in [*artifacts["paths"], *artifacts.get("reports", {}).values()]]


def test_its_words_are_gitlab_s() -> None:
    jobs: dict[str, Any] = {name: job for name, job in PIPELINE.items() if name not in GLOBAL}
    assert set(jobs) == {"specs", "parity"}
    assert set(PIPELINE["default"]) == {"image", "cache"}
    for job in jobs.values():
        assert set(job) <= JOB
        assert job["stage"] in PIPELINE["stages"]
        assert set(job["artifacts"]) <= {"when", "expire_in", "paths", "reports"}
        assert all(isinstance(line, str) for line in job["script"])
    cached = {Path(text.removeprefix("$CI_PROJECT_DIR/")).parts[0] for text in PIPELINE["variables"].values()}
    assert cached == {path.rstrip("/") for path in PIPELINE["default"]["cache"]["paths"]}


def test_specs_are_checked(tmp_path: Path) -> None:
    ran = run("specs", tmp_path)
    assert ran.code == 0, ran.log
    assert all(file.exists() for file in reports("specs", tmp_path))
    assert not [line for line in ran.installed if "torch" in line]


@pytest.mark.slow
def test_a_right_port_passes_and_leaves_its_reports(tmp_path: Path) -> None:
    ran = run("parity", tmp_path)
    assert ran.code == 0, ran.log
    assert "PASS: " in ran.log
    assert all(file.exists() for file in reports("parity", tmp_path))
    certificate = json.loads((tmp_path / "archc-reports" / "certificate.json").read_text())
    assert certificate["passed"]
    torch, archc = ran.installed
    assert torch.startswith("install --quiet torch --index-url ")
    assert archc.startswith("install --quiet archc[torch] @ ")


@pytest.mark.slow
def test_a_wrong_port_fails_the_job_and_is_in_its_test_report(tmp_path: Path) -> None:
    ran = run("parity", tmp_path, WRONG)
    assert ran.code == 1, ran.log
    suite = ElementTree.parse(tmp_path / PIPELINE["parity"]["artifacts"]["reports"]["junit"]).getroot()
    assert suite.findall(".//failure")
    assert "ffn.activation = gelu" in ran.log
