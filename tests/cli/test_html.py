"""`--html`: pages hold the figures that the command prints, and are written with the care that all files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from archc.faults import catalogue
from tests.cli.runner import archc
from tests.pages import Page


def report(tmp_path: Path, *arguments: str) -> Page:
    file = tmp_path / "sizes.html"
    done = archc("report", *arguments, "--html", str(file))
    assert done.code == 0
    assert done.out == archc("report", *arguments).out, "what is printed stays"
    return Page.read(file)


@pytest.mark.parametrize("arguments", [["gpt2"], ["gemma3-27b", "--context", "3000", "--batch", "2"], ["mixtral-8x7b"]])
def test_a_report_s_page_is_its_json_drawn(tmp_path: Path, arguments: list[str]) -> None:
    page, expected = report(tmp_path, *arguments), archc("report", *arguments, "--json").json
    assert page.document() == expected
    check_parts(page, expected["params"])
    drawn = {int(one.attributes["data-context"]): one for one in page.all("line", class_="curve")}
    for context, line in list(drawn.items())[::8]:
        sizes = [*arguments[1:], "--context", str(context)]
        cache = archc("report", arguments[0], *sizes, "--json").json["kv_cache"]
        assert int(line.attributes["data-bytes"]) == cache["bytes_at_context"]
    (own,) = page.all("circle")
    assert int(own.attributes["data-own"]) == expected["kv_cache"]["context"]
    assert own.attributes["cx"] == drawn[expected["kv_cache"]["context"]].attributes["x2"]
    (level,) = page.all("line", class_="level")
    assert int(level.attributes["data-weights"]) == expected["weights"]["bytes"]


def check_parts(page: Page, params: dict[str, int]) -> None:
    bars = page.all("rect", data_part="")
    assert sum(float(bar.attributes["width"].rstrip("%")) for bar in bars) == pytest.approx(100, abs=0.02)
    for bar in bars:
        count = params[bar.attributes["data-part"]]
        assert int(bar.attributes["data-count"]) == count
        assert float(bar.attributes["width"].rstrip("%")) == pytest.approx(100 * count / params["total"], abs=1e-3)
    assert sum(int(bar.attributes["data-count"]) for bar in bars) == params["total"]


def test_a_figure_that_was_changed_would_be_seen(tmp_path: Path) -> None:
    report(tmp_path, "gpt2")
    params = archc("report", "gpt2", "--json").json["params"]
    text = (tmp_path / "sizes.html").read_text(encoding="utf-8")
    assert f'data-count="{params["ffn"]}"' in text
    with pytest.raises(AssertionError):
        check_parts(Page(text.replace(f'data-count="{params["ffn"]}"', 'data-count="56"')), params)
    wide = next(bar for bar in Page(text).all("rect", data_part="ffn")).attributes["width"]
    with pytest.raises(AssertionError):
        check_parts(Page(text.replace(f'width="{wide}"', 'width="50%"')), params)


def test_layers_of_several_kinds_are_drawn_in_order(tmp_path: Path) -> None:
    page = report(tmp_path, "gemma3-270m")
    rows = [one.words for one in page.all("tr") if "local" in one.words or "global" in one.words]
    assert rows == ["global5, 11, 17", "local0–4, 6–10, 12–16"]
    assert "h2 Layers" not in report(tmp_path, "gpt2").outline()


def test_a_learned_table_ends_the_curve(tmp_path: Path) -> None:
    assert "the curve ends where the table of positions does" in report(tmp_path, "gpt2").all("main")[0].words


def test_the_page_of_mistakes_is_their_json_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"position.pairing", "norm.eps", "attention.head_dim"}
    monkeypatch.setattr(catalogue, "CATALOGUE", tuple(one for one in catalogue.CATALOGUE if one.id in chosen))
    page, document = tmp_path / "faults.html", tmp_path / "faults.json"
    done = archc("faults", "tiny", "--html", str(page), "--json", str(document))
    assert (done.code, done.err) == (0, "")
    expected = archc("faults", "tiny", "--json").json
    found = Page.read(page)
    assert found.document() == expected
    assert found.outside() == []
    rows = {one.attributes["data-mistake"] for one in found.all("tr", data_mistake="")}
    assert rows >= {one["name"] for one in expected["faults"]}
    assert {one["fault"] for one in expected["faults"]} == chosen


@pytest.mark.parametrize("command", [["report", "gpt2"], ["faults", "tiny"], ["validate", "tiny"]])
def test_what_is_refused_before_the_work(tmp_path: Path, command: list[str]) -> None:
    done = archc(*command, "--html", str(tmp_path / "page.txt"))
    assert (done.code, done.out) == (2, "")
    assert "name it .html" in done.err
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    done = archc(*command, "--html", str(mine))
    assert (done.code, done.out) == (2, "")
    assert "archc did not write it" in done.err
    assert mine.read_text() == "<p>mine</p>"
    done = archc(*command, "--html", str(tmp_path / "absent" / "page.html"))
    assert (done.code, done.out) == (3, "")
    assert "cannot write" in done.err


def test_its_own_page_is_replaced_and_a_changed_one_is_not(tmp_path: Path) -> None:
    report(tmp_path, "gpt2")
    report(tmp_path, "llama3-8b")
    file = tmp_path / "sizes.html"
    file.write_text(file.read_text(encoding="utf-8").replace("llama3-8b", "llama"), encoding="utf-8")
    assert archc("report", "gpt2", "--html", str(file)).code == 2
    assert archc("report", "gpt2", "--html", str(file), "--force").code == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>\n<!-- archc-sha256: ")
