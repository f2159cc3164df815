"""Wrong layouts, planted into transformers models: each shows, and is what its mutant is."""

from __future__ import annotations

import pytest

from tests.faults.layouts import PLANTINGS
from tests.faults.planting import Planting, check


@pytest.mark.parametrize("planting", PLANTINGS, ids=str)
def test_a_planted_fault_shows_and_is_its_mutant(planting: Planting) -> None:
    check(planting)
