"""A family is data: taking its file away takes away that family, and whatever builds on it, and nothing else."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import archc.families
from archc.families import Family, family, known_families
from archc.importing.convert import convert
from archc.importing.resolve import UnknownModelError
from tests.families.zoo import CASES

ROOT = Path(archc.__file__).parent
FOLDER = ROOT / "families"
# Words of the language, of transformers' formats or of English that happen to be the name of a family too.
WORDS = {"codegen", "git", "mamba", "mamba2", "rwkv", "xlstm", "flint", "beam", "phi", "olmo", "glm", "opt", "mpt"}
SPECS = {"explorer/data.py: gpt2"}  # the shipped spec that the page starts with goes by the name of its family
LONGEST = 80
PREFIX, SHARED = "archc.families.", (".base", ".common")


def module_of(name: str) -> str:
    return name.replace("-", "__")


def builds_on(name: str) -> set[str]:
    """The families that a family's file imports."""
    tree = ast.parse((FOLDER / f"{module_of(name)}.py").read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "archc.families":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("archc.families."):
            found.add(str(node.module).rpartition(".")[2])
    return {name.replace("__", "-") for name in found} - {"base", "common"}


def dependents(name: str) -> set[str]:
    """The families that build on a family, directly or not."""
    found: set[str] = set()
    while (more := {other for other in known_families() if builds_on(other) & {name, *found}}) - found:
        found |= more
    return found


@pytest.fixture
def fresh() -> Iterator[None]:
    """No family has been imported yet; afterwards all is as before."""
    kept = {name: module for name, module in sys.modules.items() if name.startswith(PREFIX)}
    forget()
    yield
    forget()
    for name, module in kept.items():
        sys.modules[name] = module
        setattr(archc.families, name.removeprefix(PREFIX), module)


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith(PREFIX) and not name.endswith(SHARED)]:
        del sys.modules[name]
        if hasattr(archc.families, name.removeprefix(PREFIX)):
            delattr(archc.families, name.removeprefix(PREFIX))


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("name", ["arcee", "gpt_neox", "mixtral", "gpt-sw3"])
def test_without_its_file_the_others_stay(name: str) -> None:
    sys.modules[f"archc.families.{module_of(name)}"] = None  # type: ignore[assignment]
    lost = set()
    for other in known_families():
        try:
            importlib.import_module(f"archc.families.{module_of(other)}")
        except ImportError:
            lost.add(other)
    assert lost == {name} | dependents(name)


def test_what_is_not_listed_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    without = tuple(name for name in known_families() if name != "arcee")
    monkeypatch.setattr("archc.importing.resolve.known_families", lambda: without)
    case = next(case for case in CASES if case.name == "arcee")
    with pytest.raises(UnknownModelError, match="arcee"):
        convert(case.config_dict(), case.name)
    other = next(case for case in CASES if case.name == "llama")
    assert convert(other.config_dict(), other.name).text


@pytest.mark.parametrize("name", known_families())
def test_the_file_is_small_and_says_one_family(name: str) -> None:
    known = family(name)
    assert isinstance(known, Family)
    assert known.model_type == name
    assert len((FOLDER / f"{module_of(name)}.py").read_text(encoding="utf-8").splitlines()) <= LONGEST + 30


def test_nothing_outside_the_families_knows_one() -> None:
    """No string or name in the package, and no template, is a family's; sources are cited in docstrings alone."""
    names = {name for name in known_families() if name not in WORDS}
    found = []
    for file in ROOT.rglob("*.py"):
        if file.parent == FOLDER:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
        words = {str(node.value) for node in constants} | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        found += [f"{file.relative_to(ROOT)}: {word}" for word in words & names]
    for file in (ROOT.parent / "templates").glob("*.j2"):
        words = set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
        found += [f"{file.name} {word}" for word in words & names]
    assert set(found) == SPECS


def test_the_check_above_sees_what_it_looks_for() -> None:
    tree = ast.parse('if family == "llama": pass')
    assert [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)] == ["llama"]
