"""Pages say what the JSON says, load and run nothing, and can be read by everybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from archc.analysis import build_report
from archc.analysis.curve import cache_curves
from archc.architecture import compile_spec
from archc.errors import IncompleteError
from archc.render.colours import PARTS
from archc.render.pages.report import report_page
from archc.render.pages.scale import Scale
from archc.render.pages.sensitivity import sensitivity_page
from archc.render.pages.validation import stopped_page, validation_page
from tests.conftest import Golden
from tests.pages import Page, unreadable
from tests.render.documents import failing, flawless, hidden, passing, sensitivity, unloadable

HOSTILE = '</pre></td><script>alert(1)</script><img src=x onerror=alert(1)>"\' onload="x" {{ 7*7 }} \x1b\u202e&amp;'

VERDICTS: dict[str, Callable[[], dict[str, Any]]] = {
    "passing": passing,
    "flawless": flawless,
    "failing": failing,
    "hidden": hidden,
    "unloadable": unloadable,
}


def sized(spec: str) -> str:
    architecture = compile_spec(spec).architecture
    report = build_report(architecture)
    (curve,) = cache_curves([(architecture, report)])
    return report_page(report, curve, [layer.kind for layer in architecture.layers])


PAGES: dict[str, Callable[[], str]] = {
    **{name: lambda made=made: validation_page(made()) for name, made in VERDICTS.items()},  # type: ignore[misc]
    "strict": lambda: validation_page(passing(), strict=True),
    "stopped": lambda: stopped_page("tiny", IncompleteError("no weights", "fetch them")),
    "sensitivity": lambda: sensitivity_page(sensitivity()),
    "gpt2": lambda: sized("gpt2"),
    "hybrid": lambda: sized("qwen3-next-80b"),
}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest) -> Page:
    return Page(PAGES[request.param]())


def test_it_loads_and_runs_nothing(page: Page) -> None:
    assert page.outside() == []
    (policy,) = page.all("meta", http_equiv="Content-Security-Policy")
    assert policy.attributes["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert "http://" not in page.page
    assert "https://" not in page.page


def test_everybody_can_read_it(page: Page) -> None:
    assert unreadable(page) == []


def test_it_is_the_same_again_and_small(page: Page) -> None:
    again = [made() for made in PAGES.values()]
    assert page.page in again
    assert len(page.page) < 60_000


def test_it_has_both_themes_and_fits_a_phone(page: Page) -> None:
    (style,) = page.all("style")
    light, dark = style.words.split("@media (prefers-color-scheme: dark)", 1)
    for part, colour in PARTS.items():
        assert f"--{part}: {colour.light};" in light
        assert f"--{part}: {colour.dark};" in dark
    used = set(re.findall(r"var\((--[a-z]+)\)", page.page))
    assert used <= set(re.findall(r"(--[a-z]+):", light)), "every colour is defined"
    assert "@media (max-width: 40rem)" in style.words
    (view,) = page.all("meta", name="viewport")
    assert view.attributes["content"] == "width=device-width, initial-scale=1"
    widths = [one.attributes.get("width", "") for one in page.all("svg")]
    assert not [width for width in widths if width and not width.endswith("%")], "nothing is wider than the page"


def test_what_must_not_be_there_is_found() -> None:
    """Otherwise the tests above would pass for want of looking."""
    bad = Page(
        '<html><head><title> </title><style>a { background: url(x) } @import "y";</style></head><body>'
        '<h1>a</h1><h3>b</h3><script src="z"></script><table><tr><th onclick="1">c</th></tr></table>'
        '<pre tabindex="0" id="i"></pre><p id="i"></p><svg></svg></body></html>'
    )
    assert set(bad.outside()) == {"script", "onclick", "url(", "@import", "src"}
    assert len(unreadable(bad)) == 7
    with pytest.raises(AssertionError):
        Page("<p><b>never closed</p>")


def replaced(value: Any) -> Any:
    """Every text of a document that may come from outside, as somebody might write it who means harm."""
    if isinstance(value, dict):
        return {key: replaced(one) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one) for one in value]
    return HOSTILE if isinstance(value, str) and value not in KEPT else value


KEPT = {"full", "killed", "loud", "equivalent", "survived", "port"}  # archc's own words, by which it decides


@pytest.mark.parametrize("name", VERDICTS)
def test_texts_from_outside_are_words(name: str) -> None:
    document = VERDICTS[name]()
    hostile = replaced(document)
    for probe, one in zip(hostile["probes"], document["probes"], strict=True):
        probe["name"] = f"{one['name']} {HOSTILE}"  # different, as they are
    assert_harmless(validation_page(hostile), hostile)


def test_texts_from_outside_are_words_where_mistakes_are() -> None:
    hostile = replaced(sensitivity())
    assert_harmless(sensitivity_page(hostile), hostile)


def test_texts_from_outside_are_words_where_sizes_are() -> None:
    architecture = compile_spec("gemma3-270m").architecture
    report = replaced(build_report(architecture, dtype="bfloat16")) | {"name": HOSTILE}
    report["layer_kinds"] = {HOSTILE: 3, "b": 15}
    (curve,) = cache_curves([(architecture, build_report(architecture))])
    assert_harmless(report_page(report, curve, [HOSTILE, "b"]), report)


def test_texts_from_outside_are_words_where_nothing_came_of_it() -> None:
    assert_harmless(stopped_page(HOSTILE, IncompleteError(HOSTILE, HOSTILE)), None)


def assert_harmless(text: str, document: Any) -> None:
    page = Page(text)
    assert page.outside() == []
    assert "{{ 7*7 }}" in text, "nothing in a document is a template"
    assert not [character for character in text if not (character.isprintable() or character == "\n")]
    if document is not None:
        assert page.document() == document
    assert "<script>alert(1)</script>" in page.all("main")[0].words, "it is there to read"


# ---------------------------------------------------------------- what verdicts say


def test_probes_are_drawn_as_the_json_says() -> None:
    for made in VERDICTS.values():
        document = made()
        page = Page(validation_page(document))
        assert page.document() == document
        rows = [one.attributes["data-probe"] for one in page.all("tr", data_probe="")]
        assert rows == [probe["name"] for probe in document["probes"]]
        drawn = [one.attributes["data-figure"] for one in page.all("svg", data_figure="")]
        assert drawn == [str(probe["times_floor"]) for probe in document["probes"]]


def test_a_figure_is_drawn_at_its_place() -> None:
    """0.85 floors on an axis from 0.1 to 100: log10(8.5) of its three decades."""
    page = Page(validation_page(passing()))
    dots = [one for one in page.all("circle") if "td" in one.inside]
    assert {one.attributes["cx"] for one in dots} == {"30.98%"}
    bounds = {one.attributes["x1"] for one in page.all("line", class_="bound") if "td" in one.inside} - {"0"}
    assert bounds == {"63.44%"}, "log10(80) of three decades"
    assert {one.attributes["cx"] for one in Page(validation_page(failing())).all("circle")} >= {"100.0%"}


def test_positions_are_drawn_and_the_first_beyond_is_named() -> None:
    page = Page(validation_page(failing()))
    strips = page.all("tr", data_strip="")
    assert [re.sub(r"\s+", " ", one.words).strip() for one in strips] == ["8 tokensnone", "64 tokenstokens 4 to 7"]
    drawn = [one.attributes["data-figure"] for one in page.all("line", class_="column")]
    assert drawn == ["0.25", "0.75", "7.5", "None"]


def test_layers_are_drawn_and_the_first_divergence_is_marked() -> None:
    document = hidden()
    document["first_divergence"] = {"layer": 2, "point": "layers.2.mixer.q", "times_floor": 31.5}
    page = Page(validation_page(document))
    points = {one.attributes["data-point"]: one.attributes["data-figure"] for one in page.all("circle", data_point="")}
    assert points == {point: str(figure) for point, figure in document["blockwise"]["points"].items()}
    assert [one.words for one in page.all("text", class_="words")] == ["first: layers.2.mixer.q"]
    assert "31.50" in [one.words for one in page.all("td", class_="number fail")]


def test_a_streamed_run_shows_what_adds_up() -> None:
    document = passing()
    document["stream"] = {"drift": {"64 tokens": {"layers.0.out": 0.5, "layers.1.out": 0.75}}}
    page = Page(validation_page(document))
    (row,) = page.all("tr", data_drift="64 tokens")
    assert "0.75" in row.words
    columns = [one.attributes["data-figure"] for one in page.all("line", class_="column")]
    assert columns[:2] == ["0.5", "0.75"]
    assert "h2 What adds up from layer to layer" not in Page(validation_page(passing())).outline()


def test_the_diagnosis_is_on_top() -> None:
    page = Page(validation_page(failing()))
    outline = [one for one in page.outline() if one.startswith("h2")]
    assert outline[:2] == ["h2 Diagnosis", "h2 What else is wrong"]
    found = [one.attributes["data-diagnosis"] for one in page.all("div", data_diagnosis="")]
    assert found == [
        "position.pairing = interleaved (declared: half), on layers 1, 2 only",
        "position.base = 10000 (declared: 5300)",
    ]
    assert "h2 Diagnosis" not in Page(validation_page(passing())).outline()


def test_mistakes_are_drawn_with_those_that_would_pass() -> None:
    document = passing()
    page = Page(validation_page(document))
    drawn = {
        one.attributes["data-mistake"]: one.attributes["data-figure"] for one in page.all("circle", data_mistake="")
    }
    assert drawn == {"position.base = 10000": "2.5", "position.pairing = interleaved": "61.5"}
    cells = [one.words for one in page.all("td", class_="fail")]
    assert "MISSED" in cells
    assert "MISSED" not in Page(validation_page(flawless())).all("main")[0].words.partition("As JSON")[0]


def test_strict_fails_where_a_mistake_would_pass() -> None:
    assert "✓ PASS" in Page(validation_page(passing())).all("p", class_="verdict")[0].words
    assert "✗ FAIL" in Page(validation_page(passing(), strict=True)).all("p", class_="verdict")[0].words


# ---------------------------------------------------------------- what mistakes cost


def test_costs_are_drawn_as_the_json_says() -> None:
    document = sensitivity()
    page = Page(sensitivity_page(document))
    assert page.document() == document
    rows = [one.attributes["data-mistake"] for one in page.all("tr", data_mistake="")]
    assert sorted(rows) == sorted([one["name"] for one in document["faults"]] + ["all positions + 500"])
    drawn = [one.attributes["data-figure"] for one in page.all("svg", data_figure="")]
    figures = [
        str(one[key]) for one in document["faults"] for key in ("loss_change", "times_floor") if not is_loud(one)
    ]
    assert sorted(drawn) == sorted([*figures, "0.0", "2.95"])


def is_loud(one: dict[str, Any]) -> bool:
    return bool(one["gate"] == "loud")


def test_mistakes_stand_with_their_like_costliest_first() -> None:
    page = Page(sensitivity_page(sensitivity()))
    rows = [one.attributes.get("data-mistake") or one.words.strip() for one in page.all("tr") if "tbody" in one.inside]
    assert rows == [
        "attention",
        "attention.grouping = tiled",
        "attention.head_dim = 16",
        "norm",
        "norm.weight.final = none",
        "norm.eps = 1e-06",
        "no mistakes, for comparison",
        "all positions + 500",
    ]
    assert "ALL SEEN" in page.all("p", class_="verdict")[0].words


def test_a_mistake_that_is_missed_is_on_top() -> None:
    document = sensitivity()
    document["faults"][1]["gate"] = "survived"
    page = Page(sensitivity_page(document))
    assert "✗ 1 MISSED" in page.all("p", class_="verdict")[0].words
    assert [one.words for one in page.all("li")] == [document["faults"][1]["name"]]


# ---------------------------------------------------------------- scales


def test_a_scale_reaches_from_one_power_of_ten_to_another() -> None:
    scale = Scale.over([3.0, None, 0.0], 8, 300)
    assert scale == (0, 3)
    assert [scale.at(one) for one in (1, 10, 1000, 0.01, 0, None, 1e9)] == [0, 33.33, 100, 0, 0, 100, 100]
    assert [power for _, power in scale.ticks()] == [1, 10, 100, 1000]
    assert len(Scale(-8, 9).ticks(3)) <= 4


# ---------------------------------------------------------------- structure


@pytest.mark.parametrize("name", ["failing", "passing", "sensitivity", "hybrid"])
def test_structure(name: str, golden: Golden) -> None:
    golden(f"pages/{name}.txt", "\n".join(Page(PAGES[name]()).outline()) + "\n")
