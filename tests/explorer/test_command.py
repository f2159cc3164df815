"""`archc explore`: what it writes, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from archc.cli.options import STDOUT
from archc.explorer import page
from tests.cli.runner import archc
from tests.explorer.test_serve import SPEC


def page_data(targets: Sequence[str]) -> dict[str, list[str]]:
    return {"models": [*targets, "gpt2"], "counts": [], "doubles": []}


def packed(data: dict[str, list[str]]) -> str:
    return page.packed({"models": data["models"]})


@pytest.fixture(autouse=True)
def small_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command without the formulas, which take a while; and in an empty folder."""

    monkeypatch.setattr("archc.explorer.data.page_data", page_data)
    monkeypatch.chdir(tmp_path)


def test_writes_a_page(tmp_path: Path) -> None:
    done = archc("explore")
    assert (done.code, done.out, done.err) == (0, "", "wrote explorer.html\n")
    text = (tmp_path / "explorer.html").read_text()
    assert text.startswith("<!doctype html>\n<!-- archc-sha256: ")
    assert packed(page_data([])) in text
    assert archc("explore", "llama3-8b").code == 0
    assert packed(page_data(["llama3-8b"])) in (tmp_path / "explorer.html").read_text()


def test_prints_the_page(tmp_path: Path) -> None:
    done = archc("explore", "-o", STDOUT)
    assert done.out.startswith("<!doctype html>\n")
    assert list(tmp_path.iterdir()) == []


def test_leaves_the_files_of_others(tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    done = archc("explore", "-o", "mine.html")
    assert done.code == 2
    assert "--force" in done.err
    assert mine.read_text() == "mine"
    assert archc("explore", "-o", "mine.html", "--force").code == 0
    assert archc("explore", "-o", "absent/mine.html").code == 3


@pytest.mark.parametrize("arguments", [["--serve", "-o", "x.html"], ["--port", "80"], ["--serve", "--port", "70000"]])
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    done = archc("explore", *arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_spec_that_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(SPEC.replace("heads: 4", "heads: four"))
    done = archc("explore", "mine.yaml")
    assert done.code == 1
    assert "mine.yaml:10" in done.err
    assert not Path("explorer.html").exists()
