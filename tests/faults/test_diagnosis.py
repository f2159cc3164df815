"""The diagnosis of a port with a planted mistake names that mistake, first and by its wrong value."""

from __future__ import annotations

import pytest

from tests.faults.planting import Planting, find_bench
from tests.faults.tables import ARCHITECTURE, LAYOUT_AND_RUNTIME, UNNAMED

pytestmark = pytest.mark.slow


_NAMED = [one for one in (*ARCHITECTURE, *LAYOUT_AND_RUNTIME) if str(one) not in UNNAMED]


@pytest.mark.parametrize("planting", _NAMED, ids=str)
def test_a_planted_fault_is_named(planting: Planting) -> None:
    bench = find_bench(planting.case)
    found = bench.diagnosed(bench.port(planting.plant))
    assert found.found, found.note
    named = found.found[0].mutants
    assert [one.fault.id for one in named] == [planting.fault], found.found[0].text
    if not planting.fault.endswith("eps"):  # small ones may be alike
        assert planting.behaves_as in (None, named[0].slip.behaves_as)
