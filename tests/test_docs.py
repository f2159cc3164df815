"""Every whole spec that the documentation shows compiles, and every relative link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from archc.architecture import compile_text
from archc.spec.diagnostics import SpecError

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SPECS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(archc: 1\n.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("text", SPECS)
def test_a_spec_in_the_documentation_compiles(text: str) -> None:
    assert compile_text(text).diagnostics == ()
    with pytest.raises(SpecError):
        compile_text(text.replace("hidden_size", "hiden_size"))


def test_there_are_specs_in_the_documentation() -> None:
    assert len(SPECS) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
