"""A number's value is found by how near it brings a model to a port; where none does, none is given."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archc.faults.tunable import TUNABLES
from archc.validation.fitting import fitted

BASE = next(one for one in TUNABLES if one.field == "position.base")
DECLARED = 5000.0


def nearness_to(value: float) -> Callable[[float], float]:
    """1 at what is declared, 0 at the value, and as far as logarithms are apart between."""
    return lambda tried: abs(math.log(tried / value)) / abs(math.log(DECLARED / value))


@given(st.floats(2, 5e7).filter(lambda value: abs(math.log(value / DECLARED)) > 0.1))
def test_the_value_is_found_to_seven_digits(value: float) -> None:
    found = list(fitted(BASE, DECLARED, nearness_to(value), lambda: False))
    assert found[-1] == pytest.approx(value, rel=1e-6)
    assert found == sorted(found, key=lambda one: abs(one - found[-1]), reverse=True)


@pytest.mark.parametrize("value", [10_000.0, 1e6, 500.0])
def test_round_values_come_first(value: float) -> None:
    assert next(fitted(BASE, DECLARED, nearness_to(value), lambda: False)) == value


def test_what_brings_nothing_near_gives_nothing() -> None:
    assert list(fitted(BASE, DECLARED, lambda _value: 1.0, lambda: False)) == []
    assert list(fitted(BASE, DECLARED, lambda value: 0.6 + 0.1 * nearness_to(1e4)(value), lambda: False)) == []


def test_time_is_kept() -> None:
    tried: list[float] = []

    def nearness(value: float) -> float:
        tried.append(value)
        return nearness_to(1e4)(value)

    assert list(fitted(BASE, DECLARED, nearness, lambda: len(tried) >= 5)) == []
    assert len(tried) == 5
