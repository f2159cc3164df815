"""The hook for other repositories: its manifest is one that pre-commit takes, and its entry runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml
from pre_commit.clientlib import load_config, load_manifest

from tests.cli.runner import archc
from tests.test_imports import ROOT

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
(HOOK,) = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))


def test_pre_commit_takes_the_manifest() -> None:
    (hook,) = load_manifest(str(MANIFEST))
    assert (hook["id"], hook["language"], hook["types"]) == ("archc-check", "python", ["yaml"])


def test_its_entry_runs_on_the_files_it_is_given(tmp_path: Path) -> None:
    program, *arguments = shlex.split(HOOK["entry"])
    assert program == "archc"
    good = str(ROOT / "specs" / "gpt2.yaml")
    assert archc(*arguments, good, str(ROOT / "specs" / "ladder" / "rope.yaml")).code == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(good).read_text(encoding="utf-8").replace("hidden_size", "hiden_size"))
    assert archc(*arguments, good, str(bad)).code == 1


def test_which_files_it_is_given() -> None:
    files = re.compile(HOOK["files"])
    assert files.search("specs/a.yaml")
    assert files.search("models/specs/small/a.yaml")
    assert not files.search("my-specs/a.yaml")
    assert not files.search(".github/workflows/ci.yaml")


def test_the_configuration_in_the_guide_is_one_and_names_the_hook(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    file = tmp_path / ".pre-commit-config.yaml"
    file.write_text(re.findall(r"```yaml\n(repos:\n.*?)```", guide, re.DOTALL)[0])
    (repository,) = load_config(str(file))["repos"]
    (hook,) = repository["hooks"]
    assert hook["id"] == HOOK["id"]
    assert re.search(hook["files"], "models/a.yaml")
