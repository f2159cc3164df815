"""The pictures of the documentation are those that archc draws now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.pictures import FOLDER, IMAGES, PHOTOGRAPHS, ROOT, draw
from tests.docs.blocks import pages
from tests.drawings import Drawing

CLOSE = 0.02
"""By which losses may differ on another machine, relative to the number."""


def said(drawing: Drawing) -> dict[str, dict[str, str]]:
    """What the marks of an image stand for."""
    groups = drawing.root.iter("{http://www.w3.org/2000/svg}g")
    figures = {one.get("id", ""): {k: v for k, v in one.attrib.items() if k.startswith("data-")} for one in groups}
    return {name: found for name, found in figures.items() if found}


def is_figures(text: str) -> bool:
    """Whether a text is numbers and what stands between them."""
    return re.fullmatch(r"-?\d[\d.e+-]*([ ,]-?\d[\d.e+-]*)*", text) is not None


def matches(one: str, other: str) -> bool:
    found, expected = ([*map(float, re.split(r"[ ,]", text))] if is_figures(text) else text for text in (one, other))
    return found == pytest.approx(expected, rel=CLOSE) if isinstance(found, list) else found == expected


def same(committed: Drawing, drawn: Drawing) -> bool:
    """Whether two images have the same marks with the same words and, closely, figures."""
    before, now = said(committed), said(drawn)
    if before.keys() != now.keys() or committed.words() != drawn.words():
        return False
    return all(matches(old, now[name][key]) for name, found in before.items() for key, old in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IMAGES])
def test_an_image_is_as_archc_draws_it_now(name: str, tmp_path: Path) -> None:
    draw(name, tmp_path / name)
    drawn = Drawing.read(tmp_path / name)
    assert same(Drawing.read(FOLDER / name), drawn), "python -m benchmarks.pictures --images draws it anew"
    mark, figures = next((name, found) for name, found in said(drawn).items() if "data-points" in found)
    other = Drawing(drawn.image.replace(figures["data-points"], figures["data-points"].replace("1", "2")))
    assert mark in said(other)
    assert not same(other, drawn), "a figure that is another would be seen"


def test_every_picture_is_shown_and_made() -> None:
    files = {file.name for file in FOLDER.iterdir()}
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages()]
    shown = {Path(link).name for text in texts for link in re.findall(r"\]\(([^)]*pictures/[^)]+)\)", text)}
    assert files == {*IMAGES, *PHOTOGRAPHS} == shown
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 600_000


def test_the_commands_that_made_them_are_shown() -> None:
    text = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    for command in (*IMAGES.values(), *(one.command for one in PHOTOGRAPHS.values())):
        assert f"$ archc {' '.join(command)} --" in text
