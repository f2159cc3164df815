"""`archc doctor`: silent about what works, and for everything that does not, the command that mends it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archc import __version__, resources
from archc.checkpoints.cache import cache_folder
from archc.doctor import examination, machine, packages, places
from archc.doctor.machine import Loaded, Machine
from archc.doctor.packages import version_of
from tests.cli.runner import archc

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def findings(document: Any, level: str = "broken") -> list[tuple[str, str]]:
    return [(one["problem"], one["mend"]) for one in document["findings"] if one["level"] == level]


def test_what_works(empty_cache: Path) -> None:
    done = archc("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    found = done.json
    assert found["consistent"]
    assert found["archc"] == {"version": __version__, "checkout": str(ROOT)}
    assert found["python"]["executable"] == sys.executable
    assert {one["name"]: one["state"] for one in found["packages"]}["click"] == "fits"
    torch = next(one for one in found["extras"] if one["name"] == "torch")
    assert torch["complete"]
    assert "validate" in torch["for"]
    assert {one["name"]: one["installed"] for one in torch["packages"]}["torch"] == version_of("torch")
    assert [one["path"] for one in found["caches"]] == [f"{empty_cache}/checkpoints", f"{empty_cache}/streams"]
    assert all(one["writable"] for one in found["caches"])
    assert not empty_cache.exists(), "looking makes nothing"
    assert {one["name"]: (one["state"], one["mend"]) for one in found["weights"]} == {
        "smollm2-135m": ("absent", "archc fetch smollm2-135m"),
        "tiny": ("whole", ""),
    }
    assert found["machine"]["loaded"] is None


def test_for_people() -> None:
    done = archc("doctor")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("what is installed works together\n")
    assert f"torch {version_of('torch')}" in done.out
    assert "smollm2-135m: absent; archc fetch smollm2-135m" in done.out
    assert max(map(len, done.out.splitlines())) <= 160


def outside(monkeypatch: pytest.MonkeyPatch, name: str, version: str | None) -> None:
    """As if a package had this version, or were not there."""
    real = packages.version_of
    for module in (packages, examination):
        monkeypatch.setattr(module, "version_of", lambda asked: version if asked == name else real(asked))


def test_a_version_outside_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    outside(monkeypatch, "transformers", "4.57.1")
    done = archc("doctor", "--json")
    assert done.code == 1
    ((problem, mend),) = findings(done.json)
    assert "transformers 4.57.1 is outside the range" in problem
    assert mend.endswith(" -m pip install 'transformers<6,>=5.24'")
    assert "1 to mend" in archc("doctor").out


def test_a_version_that_figures_were_not_measured_with(monkeypatch: pytest.MonkeyPatch) -> None:
    outside(monkeypatch, "transformers", "5.99.0")
    done = archc("doctor", "--json")
    assert done.code == 0
    assert any("transformers 5.99.0: archc's figures were measured with" in p for p, _ in findings(done.json, "note"))


@pytest.mark.parametrize(("name", "code"), [("transformers", 0), ("click", 1)])
def test_a_package_that_is_not_there(name: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an extra that is a matter of taste; archc itself cannot do without."""
    outside(monkeypatch, name, None)
    done = archc("doctor", "--json")
    assert done.code == code
    ((problem, mend),) = findings(done.json, "broken" if code else "note")
    assert name in problem
    assert " -m pip install " in mend
    assert archc("doctor").code == code


def test_archc_that_was_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "installed", lambda: None)
    done = archc("doctor", "--json")
    assert done.code == 1
    assert findings(done.json)[0][1].endswith(f"--editable '{ROOT}[torch]'")


def test_damaged_weights(empty_cache: Path) -> None:
    folder = cache_folder() / "checkpoints" / "smollm2-135m"
    shutil.copytree(ROOT / "validators" / "weights" / "tiny", folder)
    assert archc("doctor").code == 0
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    done = archc("doctor", "--json")
    assert done.code == 1
    assert findings(done.json)[0][1] == f"delete {folder}, then `archc fetch smollm2-135m`"
    assert "damaged" in archc("doctor").out


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file where the folder should be; and rights, which the super-user would have anyway."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARCHC_CACHE", str(tmp_path / "file"))
    done = archc("doctor", "--json")
    assert done.code == 1
    assert "set ARCHC_CACHE" in findings(done.json)[0][1]
    monkeypatch.setenv("ARCHC_CACHE", str(tmp_path / "closed"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert archc("doctor").code == 1


def test_no_home_for_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        from archc.errors import UsageError

        raise UsageError("no home folder to keep a cache in", "set ARCHC_CACHE to a folder")

    monkeypatch.setattr(places, "cache_folder", nowhere)
    done = archc("doctor", "--json")
    assert findings(done.json) == [("no home folder to keep a cache in", "set ARCHC_CACHE to a folder")]


def test_data_of_archc_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resources._IN_CHECKOUT, "codes", Path("absent"))
    done = archc("doctor", "--json")
    assert done.code == 1
    assert findings(done.json)[0][1] == "install archc again"


def test_threads_that_are_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    done = archc("doctor", "--json")
    assert findings(done.json) == [
        ("OMP_NUM_THREADS is 'many', which is no number of threads", "unset OMP_NUM_THREADS")
    ]


def test_a_gpu_that_torch_was_not_built_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Machine(cores=1, threads={}, memory_bytes=None, nvidia_driver="550.1")
    monkeypatch.setattr(examination, "machine", lambda: seen)
    outside(monkeypatch, "torch", "2.13.0+cpu")
    assert "a build for CPUs" in findings(archc("doctor", "--json").json, "note")[0][0]
    assert "NVIDIA driver 550.1" in archc("doctor").out
    monkeypatch.setattr(examination, "machine", lambda: replace(seen, nvidia_driver=None))
    assert findings(archc("doctor", "--json").json, "note") == []


@pytest.mark.slow
def test_deep() -> None:
    done = archc("doctor", "--deep", "--json")
    assert done.code == 0
    loaded = done.json["machine"]["loaded"]
    assert (loaded["problem"], loaded["threads"]) == ("", 1)


def test_libraries_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LOADED", "raise ImportError('libcudart.so.12: cannot open')")
    done = archc("doctor", "--deep", "--json")
    assert done.code == 1
    ((problem, mend),) = findings(done.json)
    assert problem.endswith("ImportError: libcudart.so.12: cannot open")
    assert "--force-reinstall" in mend


def test_what_deep_says_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "loaded", lambda: Loaded(4, "12.6", ("H200",)))
    assert "torch runs 4 threads, CUDA 12.6, H200" in archc("doctor", "--deep").out


def test_it_is_written_to_a_file(tmp_path: Path) -> None:
    done = archc("doctor", "--json", str(tmp_path / "doctor.json"))
    assert done.code == 0
    assert json.loads((tmp_path / "doctor.json").read_text())["consistent"]
