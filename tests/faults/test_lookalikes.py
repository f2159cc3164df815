"""What is no fault passes, or is at least not named one."""

from __future__ import annotations

import pytest

from archc.validation.parity import BOUND
from tests.faults.lookalikes import SAME, SHIFTED
from tests.faults.planting import Planting, find_bench


@pytest.mark.parametrize("lookalike", SAME, ids=str)
def test_what_computes_the_same_passes(lookalike: Planting) -> None:
    bench = find_bench(lookalike.case)
    seen = bench.seen(bench.port(lookalike.plant))
    assert max(seen.values()) <= BOUND, seen


@pytest.mark.slow
def test_a_constant_added_to_all_logits_is_no_fault() -> None:
    bench = find_bench(SHIFTED.case)
    port = bench.port(SHIFTED.plant)
    assert max(bench.seen(port).values()) > BOUND
    assert not bench.diagnosed(port, seconds=30).found
