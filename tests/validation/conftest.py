"""Tiny checkpoints, made once per session and shared by the tests of the gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers.utils import logging

from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """The folder of a tiny checkpoint by name."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            logging.disable_progress_bar()
            made[name] = tmp_path_factory.mktemp(name)
            BY_NAME[name].save(made[name])
        return made[name]

    return make


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short text, for checkpoints that have no tokenizer anyway."""
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("The timetable was a description of the sea rather than a promise.")
    return file
