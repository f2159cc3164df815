"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["archc.spec.pattern", "archc.checkpoints.manifest", "archc.render.units"])
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
