"""What all tests share: a quiet, offline, single-threaded environment, and goldens.

No test module may import torch before this file has run, and this file never imports it: its environment variables
are read when torch and transformers are first imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.update(
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TRANSFORMERS_VERBOSITY="error",
    # One thread per xdist worker: they do not fight over cores, and sums are added in the same order everywhere.
    MKL_NUM_THREADS="1",
    OMP_NUM_THREADS="1",
)

GOLDENS = Path(__file__).parent / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="rewrite tests/goldens/ with what archc prints now; read the diff before you commit it",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Every test begins with the same random numbers, whichever ran before it in the same process."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@dataclass(frozen=True)
class Golden:
    """Compares text with a golden file; `golden("report/gpt2.txt", printed)`.

    Goldens hold layout (terminal output, generated code). Figures are tested against sources outside archc.
    """

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path} does not exist: python -m pytest --update-goldens writes it"
        assert text == path.read_bytes().decode(), f"{path} differs: python -m pytest --update-goldens if this is meant"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(GOLDENS, update=request.config.getoption("--update-goldens"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A running Chromium, one for all: Playwright cannot run twice in a process."""
    from tests.chromium import chromium

    with chromium() as running:
        yield running
