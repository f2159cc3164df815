"""The GitHub Action: its steps run here as the runner would run them, with a python that only takes notes."""

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

import pytest
import yaml

from tests.test_imports import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([a-z-]+)\s*\}\}")

# Notes its arguments, prints a verdict, and ends as it is told to.
PYTHON = """#!{python}
import json, os, sys
with open(os.environ["NOTES"], "a") as notes:
    print(json.dumps(sys.argv[1:]), file=notes)
if "archc" in sys.argv:
    print("tiny: port against reference", "", "  " + os.environ["VERDICT"], sep="\\n")
    sys.exit(int(os.environ["CODE"]))
sys.exit("import torch" in sys.argv and not int(os.environ["HAS_TORCH"]))
"""


# Runs what it is told to, with this archc.
REAL_PYTHON = """#!/bin/sh
PYTHONPATH={root} exec {python} "$@"
"""
RIGHT = """
import transformers


def load(weights, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager").eval()
"""


@dataclass(frozen=True)
class Ran:
    """How a step ended: its exit code, the command lines that python saw, the outputs and the summary."""

    code: int
    calls: list[list[str]]
    outputs: dict[str, str]
    summary: str
    log: str


def run(
    name: str,
    folder: Path,
    *,
    verdict: str = "PASS: fine",
    code: int = 0,
    torch: bool = True,
    really: bool = False,
    **inputs: str,
) -> Ran:
    """Run one step in `folder`, with the inputs as the runner gives them: defaults, and the environment filled in."""
    step = STEPS[name]
    fake = folder / "bin" / "python"
    fake.parent.mkdir(exist_ok=True)
    fake.write_text((REAL_PYTHON if really else PYTHON).format(python=sys.executable, root=ROOT))
    fake.chmod(0o755)
    notes, output, summary = (folder / name for name in ("notes", "output", "summary"))
    for file in (notes, output, summary):
        file.write_text("")
    values = {key: str(spec.get("default", "")) for key, spec in ACTION["inputs"].items()}
    values |= {key.replace("_", "-"): value for key, value in inputs.items()}
    given = {key: EXPRESSION.sub(lambda found: values[found[1]], text) for key, text in step["env"].items()}
    environment = {
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "NOTES": str(notes),
        "VERDICT": verdict,
        "CODE": str(code),
        "HAS_TORCH": str(int(torch)),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_ACTION_PATH": str(ROOT),
        **given,
    }
    script = folder / "step.sh"
    script.write_text(step["run"])
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    calls = [json.loads(line) for line in notes.read_text().splitlines()]
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return Ran(done.returncode, calls, outputs, summary.read_text(), done.stdout)


def test_a_run_with_nothing_but_a_target(tmp_path: Path) -> None:
    ran = run("Validate", tmp_path, target="tiny")
    assert ran.code == 0
    assert ran.calls == [
        [
            "-Pm",
            "archc",
            "validate",
            "--json=archc-reports/gate.json",
            "--junit=archc-reports/gate.xml",
            "--sarif=archc-reports/gate.sarif",
            "--certificate=archc-reports/certificate.json",
            "--html=archc-reports/gate.html",
            "--",
            "tiny",
        ]
    ]
    assert (tmp_path / "archc-reports").is_dir()
    assert ran.outputs == {"exit-code": "0", "verdict": "PASS: fine"}
    assert ran.summary == "### archc validate\n\n    tiny: port against reference\n    \n      PASS: fine\n"
    assert ran.log.splitlines()[-1] == "  PASS: fine"


def test_every_input_is_an_argument(tmp_path: Path) -> None:
    ran = run(
        "Validate",
        tmp_path,
        target="my spec.yaml",
        weights="my weights",
        port_command="./port {weights} {probes} {out}",
        strict="true",
        args="--set\nposition.base=5000\n\n--force",
        reports="out",
    )
    (call,) = ran.calls
    assert call[-8:] == [
        "--weights=my weights",
        "--port-command=./port {weights} {probes} {out}",
        "--strict",
        "--set",
        "position.base=5000",
        "--force",
        "--",
        "my spec.yaml",
    ]
    assert "--json=out/gate.json" in call
    assert "--port=a.py:load" in run("Validate", tmp_path, target="tiny", port="a.py:load").calls[0]


@pytest.mark.parametrize("code", [1, 2, 3])
def test_a_run_that_fails_still_writes_its_summary(tmp_path: Path, code: int) -> None:
    ran = run("Validate", tmp_path, verdict="FAIL: 7 of 7 probes", code=code, target="tiny")
    assert ran.code == code
    assert ran.outputs == {"exit-code": str(code), "verdict": "FAIL: 7 of 7 probes"}
    assert "FAIL: 7 of 7 probes" in ran.summary


HOSTILE = ("$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "--force", "-", "*", "a\\b")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["target", "weights", "port", "port_command", "args"])
def test_inputs_are_never_run(tmp_path: Path, name: str, text: str) -> None:
    inputs: dict[str, Any] = {"target": "tiny"} | {name: text}
    ran = run("Validate", tmp_path, **inputs)
    (call,) = ran.calls
    assert not (tmp_path / "pwned").exists()
    option = {"target": "", "args": ""}.get(name, f"--{name.replace('_', '-')}=")
    assert f"{option}{text}" in call
    assert call[-2] == "--"


def test_what_a_run_prints_is_no_markdown_and_no_further_output(tmp_path: Path) -> None:
    ran = run("Validate", tmp_path, verdict="PASS\n```\n# title\nverdict=other", target="tiny")
    assert all(line.startswith("    ") for line in ran.summary.splitlines()[2:])
    assert ran.outputs == {"exit-code": "0", "verdict": "verdict=other"}


@pytest.mark.parametrize("torch", [True, False])
def test_torch_is_installed_without_cuda_unless_it_is_there(tmp_path: Path, torch: bool) -> None:
    ran = run("Install archc", tmp_path, torch=torch)
    assert ran.code == 0
    archc = ["-Pm", "pip", "install", "--quiet", f"{ROOT}[torch]"]
    index = "https://download.pytorch.org/whl/cpu"
    first = [] if torch else [["-Pm", "pip", "install", "--quiet", "--index-url", index, "torch"]]
    assert ran.calls == [["-Pc", "import torch"], *first, archc]


def test_no_script_holds_an_expression() -> None:
    """An expression in a script is text of the caller's that the shell would read."""
    scripts = [step["run"] for step in STEPS.values() if "run" in step]
    assert len(scripts) == 2
    assert not [script for script in scripts if "${{" in script]
    assert [step for step in STEPS.values() if "run" in step and step["shell"] != "bash"] == []


def test_every_input_is_used_and_every_expression_is_an_input() -> None:
    steps: Any = ACTION["runs"]["steps"]
    used = set(re.findall(r"inputs\.([a-z-]+)", json.dumps(steps)))
    assert used == set(ACTION["inputs"])
    assert STEPS["Upload findings"]["with"]["sarif_file"] == "${{ inputs.reports }}/gate.sarif"


def test_the_options_are_those_of_the_command() -> None:
    from archc.cli.validate import command

    known = {name for option in command.params for name in option.opts}
    used = set(re.findall(r"(--[a-z-]+)=", STEPS["Validate"]["run"])) | {"--strict"}
    assert used - {"--port-command"} <= known


WORKFLOW = yaml.safe_load(
    re.findall(r"```yaml\n(name: parity\n.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), re.DOTALL)[0]
)
(USED,) = (
    step["with"] for step in WORKFLOW["jobs"]["validate"]["steps"] if step["uses"].partition("@")[0] == "OWNER/archc"
)


def test_the_workflow_in_the_guide_gives_inputs_that_there_are() -> None:
    assert set(USED) <= set(ACTION["inputs"])
    assert all(isinstance(text, str) for text in USED.values())  # GitHub has no other inputs: true alone is no text
    assert WORKFLOW["permissions"]["security-events"] == "write"


@pytest.mark.parametrize(("wrong", "code", "verdict"), [(False, 0, "PASS: "), (True, 1, "FAIL: ")])
def test_the_step_of_the_guide_validates(tmp_path: Path, wrong: bool, code: int, verdict: str) -> None:
    """As the guide has it, with archc itself: tiny as the model, and a quick run."""
    (tmp_path / "specs").mkdir()
    shutil.copy(ROOT / "specs" / "tiny.yaml", tmp_path / "specs" / "my-model.yaml")
    shutil.copytree(ROOT / "validators" / "weights" / "tiny", tmp_path / "checkpoint")
    (tmp_path / "ports").mkdir()
    port = (ROOT / "examples" / "wrong_activation.py").read_text() if wrong else RIGHT
    (tmp_path / "ports" / "my_port.py").write_text(port)
    inputs = {key.replace("-", "_"): text for key, text in USED.items() if key not in {"strict", "args"}}
    ran = run("Validate", tmp_path, really=True, args="--quick", **inputs)
    assert ran.code == code, ran.log
    assert ran.outputs["verdict"].startswith(verdict)
    for name in ("gate.json", "gate.xml", "gate.sarif", "gate.html", "certificate.json"):
        assert (tmp_path / "archc-reports" / name).exists()
