"""The site builds without a warning, holds a page for everything that archc can tell, and needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from archc import resources
from archc.cli.app import COMMANDS
from archc.families import known_families
from archc.faults.catalogue import CATALOGUE
from archc.parts.kinds import KINDS
from docs._site import language
from docs._site.markdown import plain, rebased
from tests.docs.blocks import ROOT
from tests.docs.scratch import copy_repository

_REQUESTED = re.compile(r"<(?:script|link|img|iframe|source|use)\b[^>]*?(?:src|href)=\"((?:https?:)?//[^\"]+)\"")
_IN_STYLES = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]  # one worker builds it, once


def build(repository: Path) -> subprocess.CompletedProcess[str]:
    """Do what `make docs` does, in a copy of the repository."""
    command = ["-m", "sphinx", "-b", "html", "-j", "auto", "-W", "-n", "--keep-going", "-q", "docs", "build/site"]
    return subprocess.run(
        [sys.executable, *command],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "archc"
    copy_repository(folder)
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def site(repository: Path) -> Path:
    return repository / "build" / "site"


def test_everything_has_its_page(site: Path) -> None:
    wanted = [
        *(f"codes/{file.stem}" for file in resources.folder("codes").glob("*.md")),
        *(f"reference/faults/{fault.id}" for fault in CATALOGUE),
        *(f"reference/commands/{name}" for name in COMMANDS),
        *(
            f"reference/language/{section}-{kind}"
            for section, kinds in KINDS.items()
            if section != "scaling"
            for kind in kinds
        ),
        *(file.relative_to(ROOT / "docs").with_suffix("") for file in (ROOT / "docs" / "adr").glob("*.md")),
    ]
    assert [name for name in wanted if not (site / f"{name}.html").is_file()] == []
    tiers = "".join(file.read_text() for file in (site / "reference" / "families").glob("*.html"))
    assert [name for name in known_families() if f">{name}<" not in tiers] == []


def test_every_field_has_its_place(site: Path) -> None:
    texts: dict[str, str] = {}
    for path, (page, anchor) in language.places().items():
        text = texts.setdefault(page, (site / f"{page}.html").read_text(encoding="utf-8"))
        assert f'id="{anchor}"' in text, path
    assert len(language.places()) > 200


def test_names_in_backticks_lead_to_their_pages(site: Path) -> None:
    text = (site / "faults.html").read_text(encoding="utf-8")
    assert 'href="reference/faults/cache.positions.html"><code' in text
    assert 'href="reference/commands/explain.html"><code' in text
    assert 'href="reference/language/attention-gqa.html#field-attention-gqa-grouping"><code' in text


def test_nothing_is_asked_of_a_network(site: Path) -> None:
    pages = [file.read_text(encoding="utf-8") for file in site.rglob("*.html")]
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert [found for text in pages for found in _REQUESTED.findall(text)] == []
    assert [found for text in [*pages, *styles] for found in _IN_STYLES.findall(text)] == []
    assert _REQUESTED.findall('<script defer src="https://cdn.example/a.js"></script>')
    assert _IN_STYLES.findall('@import "https://fonts.example/a.css"; a {background: url(//b.example/c)}')


def test_it_fits_a_phone_and_can_be_searched(site: Path) -> None:
    assert 'name="viewport"' in (site / "index.html").read_text(encoding="utf-8")
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(word in index for word in ("softcap", "cache.positions", "E101"))


def test_what_leads_nowhere_fails(repository: Path) -> None:
    wrong = {
        "no-such-page": "[nowhere](no-such-page.md)",
        "no-such-heading": "[nowhere](validation.md#no-such-heading)",
        "no-such-label": "{ref}`no-such-label`",
        "no-such-directive": "```{no-such-directive}\n```",
    }
    page = repository / "docs" / "lengths.md"
    text = page.read_text(encoding="utf-8")
    page.write_text("\n\n".join([text, *wrong.values(), ""]), encoding="utf-8")
    done = build(repository)
    page.write_text(text, encoding="utf-8")
    assert done.returncode != 0
    assert [complaint for complaint in wrong if complaint not in done.stderr] == []


def test_links_are_those_of_the_place_they_stand_in() -> None:
    here = "[a](docs/sizes.md#x) [b](https://a.example) `[c](docs/d.md)` [e](examples/README.md) [f](action.yml)"
    there = "[a](../sizes.md#x) [b](https://a.example) `[c](docs/d.md)` [e](examples.md) [f](../../action.yml)"
    assert rebased(here, PurePosixPath("README.md"), PurePosixPath("docs/reference/changes.md")) == there


def test_plain_text_stays_as_it_is() -> None:
    assert plain("a*b_c `d*e` <f>|[g]") == r"a\*b\_c `d*e` \<f\>\|\[g\]"
