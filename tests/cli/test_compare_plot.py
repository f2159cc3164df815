"""`archc compare --plot`: what is drawn is what the reports say; and what is refused."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from archc import resources
from archc.analysis import build_report
from archc.analysis.curve import cache_curves
from archc.architecture import compile_spec
from archc.render.compare_plot import write_compare_plot
from tests.analysis.specs import RECURRENT
from tests.cli.runner import archc
from tests.drawings import Drawing, path_of

SPECS = ("gpt2", "gemma3-27b", "qwen3-next-80b")


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Drawing:
    file = tmp_path_factory.mktemp("plot") / "compared.svg"
    assert archc("compare", *SPECS, "--plot", str(file)).code == 0
    return Drawing.read(file)


def fitted(pairs: Sequence[tuple[float, float]]) -> float:
    """By how much figures and pixels are not one line: the largest residual, in pixels."""
    (x0, y0), (x1, y1) = pairs[0], pairs[-1]
    return max(abs(y0 + (x - x0) * (y1 - y0) / (x1 - x0) - y) for x, y in pairs)


def test_every_point_is_what_archc_report_says(drawing: Drawing) -> None:
    for mark in drawing.marks("cache"):
        points = [tuple(map(int, pair.split(","))) for pair in mark.attrib["data-points"].split()]
        for context, size in (points[0], points[len(points) // 2], points[-1]):
            report = archc("report", mark.attrib["data-model"], "--context", str(context), "--json").json
            assert report["kv_cache"]["bytes_at_context"] == size


def test_points_are_drawn_where_their_figures_are(drawing: Drawing) -> None:
    """Both axes are logarithmic: pixels are a line in logarithms, one and the same for all models."""
    across, up = [], []
    for mark in drawing.marks("cache"):
        points = [tuple(map(int, pair.split(","))) for pair in mark.attrib["data-points"].split()]
        drawn = path_of(mark)
        across += [(math.log(context), x) for (context, _), (x, _) in zip(points, drawn, strict=True)]
        up += [(math.log(size), y) for (_, size), (_, y) in zip(points, drawn, strict=True)]
    assert fitted(sorted(across)) < 0.1
    assert fitted(sorted(up)) < 0.1
    moved = [*across[:2], (across[2][0] + 0.05, across[2][1]), *across[3:]]
    assert fitted(sorted(moved)) > 0.1, "a context that is off by 5 % would be seen"


def test_bars_are_as_long_as_their_parts_are_large(drawing: Drawing) -> None:
    for kind in ("count", "share"):
        for number, spec in enumerate(SPECS):
            params = archc("report", spec, "--json").json["params"]
            bars = drawing.marks(f"{kind}-{number}")
            assert {bar.attrib["data-part"]: int(bar.attrib["data-count"]) for bar in bars} == {
                part: count
                for part, count in params.items()
                if count and part in {"embedding", "position", "attention", "ffn", "router", "norm", "other", "head"}
            }
            lengths = [max(x for x, _ in path_of(bar)) - min(x for x, _ in path_of(bar)) for bar in bars]
            whole = sum(lengths)
            for bar, length in zip(bars, lengths, strict=True):
                assert length / whole == pytest.approx(int(bar.attrib["data-count"]) / params["total"], abs=2e-3)


def test_contexts_weights_and_walls_are_marked(drawing: Drawing) -> None:
    reports = [archc("report", spec, "--json").json for spec in SPECS]
    own = {mark.attrib["data-model"]: int(mark.attrib["data-context"]) for mark in drawing.marks("context")}
    assert own == {report["name"]: report["context"] for report in reports}
    weights = {mark.attrib["data-model"]: int(mark.attrib["data-bytes"]) for mark in drawing.marks("weights")}
    assert weights == {report["name"]: report["weights"]["bytes"] for report in reports}
    assert [(mark.attrib["data-model"], mark.attrib["data-wall"]) for mark in drawing.marks("wall")] == [
        ("gpt2", "1024")
    ]


def test_structure(drawing: Drawing) -> None:
    """What a reader without eyes gets, and that nothing is loaded."""
    root = drawing.root
    assert root.attrib["role"] == "img"
    named = {element.get("id"): element.text for element in root if element.get("id") in {"title", "description"}}
    assert root.attrib["aria-labelledby"].split() == ["title", "description"]
    assert named["title"] == "gpt2, gemma3-27b, qwen3-next-80b: cache and parameters"
    assert {"gpt2", "Parameters by part", "As a share", "tokens", "feed-forward", "own context", "100%"} <= set(
        drawing.words()
    )
    (said, *_) = [element.text for element in drawing.marks("wall")[0] if element.tag.endswith("title")]
    assert said == "gpt2: its table of positions ends at 1,024"
    assert drawing.outside() == []
    assert len(drawing.image) < 100_000


def test_what_would_be_loaded_is_found() -> None:
    """Otherwise the test above would pass for want of looking."""
    inside = (
        '<image href="a.png"/><a href="https://b"/><style>@import "c"; x{background:url(d)}</style><script>1</script>'
    )
    assert len(Drawing(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>').outside()) >= 5


def test_the_same_bytes_again(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.{kind}" for kind in ("svg", "png") for number in range(2)]
    for file in files:
        assert archc("compare", "gpt2", "llama3-8b", "--plot", str(file)).code == 0
    images = [file.read_bytes() for file in files]
    assert images[0] == images[1]
    assert images[2] == images[3]
    assert images[2].startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_what_archc_did_not_write_is_kept(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"image.{kind}"
    arguments = ["compare", "gpt2", "--plot", str(file)]
    assert archc(*arguments).code == 0
    assert archc(*arguments).code == 0, "its own image is replaced"
    changed = bytearray(file.read_bytes())
    changed[-150] ^= 1
    file.write_bytes(changed)
    done = archc(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "changed since" in done.err
    assert file.read_bytes() == changed
    assert archc(*arguments, "--force").code == 0
    assert file.read_bytes() != changed


@pytest.mark.parametrize("name", ["image.pdf", "image", "image.svg.gz", ".svg"])
def test_an_ending_that_says_nothing(tmp_path: Path, name: str) -> None:
    done = archc("compare", "gpt2", "--plot", str(tmp_path / name))
    assert (done.code, done.out) == (2, "")
    assert "name it .svg or .png" in done.err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = archc("compare", "gpt2", "llama3-8b", "--plot", str(tmp_path / "image.svg"))
    assert (done.code, done.out) == (3, "")
    assert "drawing needs matplotlib" in done.err
    assert "pip install 'archc[plot]'" in done.err
    assert archc("compare", "gpt2", "llama3-8b").code == 0, "the table needs nothing"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_names_are_words(tmp_path: Path, kind: str) -> None:
    """Whatever they are: the language alone keeps others out."""
    hostile = "<script>alert(1)</script> $\\frac{1}$ ' \" & ]]> 模型\x1b"
    architecture = compile_spec("gpt2").architecture
    report = build_report(architecture)
    report["name"] = hostile
    file = tmp_path / f"image.{kind}"
    write_compare_plot(cache_curves([(architecture, report)]), [report], str(file))
    if kind == "svg":
        drawing = Drawing.read(file)
        assert drawing.outside() == []
        assert drawing.marks("cache")[0].attrib["data-model"].startswith("<script>alert(1)</script> $")
        assert any(word.startswith("<script>alert(1)</script> $") for word in drawing.words())


def test_more_models_than_colours(tmp_path: Path) -> None:
    spec = tmp_path / "copy.yaml"
    shutil.copy(resources.folder("specs") / "gpt2.yaml", spec)
    done = archc("compare", *["gpt2"] * 8, str(spec), "--plot", str(tmp_path / "image.svg"))
    assert done.code == 0
    marks = Drawing.read(tmp_path / "image.svg").marks("cache")
    styles = {path.attrib["style"] for mark in marks for path in mark if path.tag.endswith("path")}
    assert len(styles) == 9


def test_a_state_that_does_not_grow_is_a_level_line(tmp_path: Path) -> None:
    spec = tmp_path / "recurrent.yaml"
    spec.write_text(RECURRENT)
    assert archc("compare", str(spec), "--plot", str(tmp_path / "image.svg")).code == 0
    (line,) = Drawing.read(tmp_path / "image.svg").marks("cache")
    assert len({y for _, y in path_of(line)}) == 1
