"""Wrong running, planted into transformers models: each shows, and is what its mutant is."""

from __future__ import annotations

import pytest

from tests.faults.planting import Planting, check
from tests.faults.running import PLANTINGS


@pytest.mark.parametrize("planting", PLANTINGS, ids=str)
def test_a_planted_fault_shows_and_is_its_mutant(planting: Planting) -> None:
    check(planting)
