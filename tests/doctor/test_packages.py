"""Packages and extras as archc's own metadata states them."""

from __future__ import annotations

import tomllib
from importlib import metadata
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from archc.doctor import packages
from archc.doctor.examination import is_complete
from archc.doctor.packages import PURPOSES, Installed, pip_install_extra, version_of

ROOT = Path(__file__).parents[2]
METADATA = """\
Metadata-Version: 2.4
Name: archc
Version: 9.9
Requires-Python: >=3.11
Requires-Dist: click>=8.1
Requires-Dist: nothing-of-this-name>=1; python_version < "3"
Requires-Dist: {torch}; extra == "torch"
Requires-Dist: transformers<6,>=5.24; extra == "torch"
Requires-Dist: archc[torch]; extra == "all"
Requires-Dist: pytest; extra == "all"
Provides-Extra: torch
Provides-Extra: all
"""


def distribution(folder: Path, monkeypatch: pytest.MonkeyPatch, torch: str = "torch>=2.13") -> Installed:
    """archc as if installed with these requirements, in place of the real one."""
    info = folder / "archc-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(torch=torch))
    own = Distribution.at(info)
    monkeypatch.setattr(packages, "distribution", lambda name: own if name == "archc" else metadata.distribution(name))
    found = packages.installed()
    assert found is not None
    return found


def test_extras_come_from_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = distribution(tmp_path, monkeypatch)
    assert [(one.name, one.range, one.state) for one in own.needed()] == [("click", ">=8.1", "fits")]
    every, torch = own.extras()
    assert (every.name, every.includes, [one.name for one in every.packages]) == ("all", ("torch",), ["pytest"])
    assert [one.requirement for one in torch.packages] == ["torch>=2.13", "transformers<6,>=5.24"]
    assert torch.packages[0].installed == version_of("torch")
    assert is_complete(every, (every, torch))


@pytest.mark.parametrize(("torch", "state"), [("torch<2", "outside"), ("torch-of-nobody>=1", "absent")])
def test_what_does_not_fit_is_seen(torch: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every, extra = distribution(tmp_path, monkeypatch, torch).extras()
    assert extra.packages[0].state == state
    assert not is_complete(extra, (every, extra))
    assert not is_complete(every, (every, extra)), "an extra is no more complete than those that it includes"


def test_every_extra_says_what_it_is_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(PURPOSES) == set(declared), "archc.doctor.packages.PURPOSES has a line for each"


def test_the_command_for_an_extra() -> None:
    assert pip_install_extra("torch", None).endswith(" -m pip install 'archc[torch]'")
    assert pip_install_extra("torch", Path("/a b")).endswith(" -m pip install --editable '/a b[torch]'")
    assert pip_install_extra("", Path("/a")).endswith(" -m pip install --editable /a")
