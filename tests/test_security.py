"""Every claim of docs/security.md names a test that there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "security.md").read_text(encoding="utf-8")
CITED = re.findall(r"\[`(test_\w+)`\]\(([^)]+)\)", PAGE)


def is_there(name: str, place: str) -> bool:
    tree = ast.parse((DOCS / place).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


@pytest.mark.parametrize(("name", "place"), CITED)
def test_a_cited_test_is_there(name: str, place: str) -> None:
    assert is_there(name, place)


def test_one_that_is_not_there_would_be_seen() -> None:
    assert not is_there("test_nothing_of_this_name", CITED[0][1])


def test_every_row_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| file", "| what |"))]
    assert len(rows) >= 30
    heads = [row for row in rows if "](../tests/" not in row]
    assert len(heads) == 1, heads  # the one that only introduces the rows below it
