"""Every diagnostic code has a page, and the examples on it are true."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import archc
from archc import resources
from archc.advice import advise
from archc.analysis import build_report, compare_claims
from archc.architecture import compile_text
from archc.checkpoints.manifest import UnstorableError, build_manifest
from archc.codegen import UngeneratedError, generate
from archc.spec.diagnostics import Diagnostic, SpecError
from archc.spec.source import entries, read

SECTIONS = ["What it means", "Why it matters", "Example", "Instead", "Source"]
PAGES = sorted(resources.folder("codes").glob("*.md"))
FULL_SPEC = "archc: 1\n"

# Codes that no compilation gives: their examples are tried one by one at the end of this file.
ELSEWHERE = {"E002", "E209", "E210", "E301"}

# Figures of a real model, whose design may deserve notes.
REAL_MODELS = {"E301"}

# Their places are lines that both blocks have: where reading stopped, and the section that the kinds differ from.
PLACED_ELSEWHERE = {"E001", "E207"}


@dataclass(frozen=True)
class Page:
    """A page as its reader sees it."""

    title: str
    sections: dict[str, str]

    def yaml(self, section: str) -> str:
        """The one YAML block of a section."""
        (block,) = re.findall(r"^```yaml\n(.*?)^```$", self.sections[section], re.MULTILINE | re.DOTALL)
        return str(block)


def page(file: Path) -> Page:
    head, *parts = re.split(r"^## (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(parts) == 2 * len(set(parts[::2])), "a section occurs twice"
    return Page(head.strip(), dict(zip(parts[::2], parts[1::2], strict=True)))


def shipped(code: str) -> Page:
    return page(resources.folder("codes") / f"{code}.md")


def diagnoses(text: str) -> tuple[Diagnostic, ...]:
    """Everything that compiling a spec says about it, and the advice on what it makes."""
    try:
        compiled = compile_text(text)
    except SpecError as error:
        return error.diagnostics
    return (*compiled.diagnostics, *advise(compiled))


def codes_given(text: str) -> set[str]:
    return {diagnostic.code for diagnostic in diagnoses(text)}


def codes_in_source() -> set[str]:
    files = Path(archc.__file__).parent.rglob("*.py")
    return {code for file in files for code in re.findall(r"\b[EWN][0-9]{3}\b", file.read_text(encoding="utf-8"))}


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {file.stem for file in PAGES} == codes_in_source()


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_page_has_its_form(file: Path) -> None:
    found = page(file)
    assert re.fullmatch(rf"# {file.stem}: [a-z].*[^.]", found.title)
    assert list(found.sections) == SECTIONS
    assert all(text.strip() for text in found.sections.values())
    for section in SECTIONS:
        assert found.sections[section].count("```") == (2 if section in ("Example", "Instead") else 0)
    assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_example_gives_the_code_and_nothing_else(file: Path) -> None:
    text = page(file).yaml("Example")
    if file.stem not in ELSEWHERE:
        assert text.startswith(FULL_SPEC), "an example that is no full spec needs a test of its own"
        assert codes_given(text) == {file.stem}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_mended_example_gives_nothing(file: Path) -> None:
    text = page(file).yaml("Instead")
    assert text != page(file).yaml("Example") or file.stem == "E002"
    if text.startswith(FULL_SPEC) and file.stem not in REAL_MODELS:
        assert codes_given(text) == set()


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_example_is_diagnosed_where_it_is_mended(file: Path) -> None:
    if file.stem in ELSEWHERE | PLACED_ELSEWHERE:
        return
    mended = page(file).yaml("Instead").splitlines()
    for diagnostic in diagnoses(page(file).yaml("Example")):
        assert diagnostic.span is not None
        assert diagnostic.span.text not in mended
        assert diagnostic.mend


def test_the_example_of_e002_is_refused_as_latin_1_and_read_as_utf_8(tmp_path: Path) -> None:
    found = shipped("E002")
    spec = tmp_path / "spec.yaml"
    spec.write_bytes(found.yaml("Example").encode("latin-1"))
    with pytest.raises(SpecError) as refused:
        read(spec)
    assert [diagnostic.code for diagnostic in refused.value.diagnostics] == ["E002"]
    spec.write_bytes(found.yaml("Instead").encode())
    assert entries(read(spec))


def test_the_example_of_e209_has_no_place_in_its_family() -> None:
    found = shipped("E209")
    with pytest.raises(UnstorableError, match="E209"):
        build_manifest(compile_text(found.yaml("Example")).architecture)
    assert build_manifest(compile_text(found.yaml("Instead")).architecture).table


def test_the_example_of_e210_cannot_be_generated() -> None:
    found = shipped("E210")
    with pytest.raises(UngeneratedError, match=r"E210.*attention\.sinks: projected"):
        generate(compile_text(found.yaml("Example")).architecture)
    assert generate(compile_text(found.yaml("Instead")).architecture)


@pytest.mark.parametrize(("section", "holds"), [("Example", False), ("Instead", True)])
def test_the_claim_of_e301(section: str, holds: bool) -> None:
    architecture = compile_text(shipped("E301").yaml(section)).architecture
    (result,) = compare_claims(architecture.claims, build_report(architecture))
    assert result.holds == holds
