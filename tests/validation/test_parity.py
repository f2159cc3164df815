"""Deviations and floors against hand-computed values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch
import torch.nn.functional as F

from archc.validation.arithmetic import other_products
from archc.validation.parity import BOUND, Baseline, Deviation, Floor, deviation, distance, judge, measure
from archc.validation.probes import Probe
from archc.validation.reference import Reference

Checkpoint = Callable[[str], Path]
PROBE = Probe("p", "a test", torch.tensor([[3, 4]]))
NOBODY = cast(Reference, None)  # a model without choices is never run again
ALL = torch.ones(1, 2, dtype=torch.bool)


def test_no_position_to_judge_is_no_distance() -> None:
    logits = torch.ones(1, 3, 5)
    assert distance(logits, logits, torch.zeros(1, 3, dtype=torch.bool)).max_abs == 0


@pytest.mark.parametrize("outputs", [0, 5])
def test_other_products_are_the_same_products(outputs: int) -> None:
    """A shared expert of no width has a matrix without rows, which oneDNN refuses."""
    x, weight = torch.ones(3, 4), torch.ones(outputs, 4)
    with torch.no_grad(), other_products():
        assert F.linear(x, weight).tolist() == [[4.0] * outputs] * 3


def test_deviation_by_hand() -> None:
    """Two positions of two logits: differences 0, 0, 3, -4; log-softmax of [0, 0] against [0, ln 3]."""
    reference = torch.tensor([[[0.0, math.log(3)], [0.0, 0.0]]])
    ours = torch.tensor([[[0.0, math.log(3)], [3.0, -4.0]]])
    found = deviation(ours, reference, ALL)
    assert found.max_abs == 4
    assert found.rms == pytest.approx(2.5)  # sqrt((9 + 16) / 4)
    kl = 0.5 * (math.log(0.5) - (-math.log1p(math.exp(-7)))) + 0.5 * (math.log(0.5) - (-7 - math.log1p(math.exp(-7))))
    assert found.kl == pytest.approx(kl / 2)
    assert found.top1 == 1.0  # argmax of equal logits is the first, and so is ours


def test_only_judged_positions_count() -> None:
    reference = torch.zeros(1, 2, 2)
    ours = torch.tensor([[[0.0, 0.0], [9.0, 0.0]]])
    assert deviation(ours, reference, torch.tensor([[True, False]])).max_abs == 0
    assert deviation(ours, reference, ALL).max_abs == 9


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_a_number_never_passes(bad: float) -> None:
    reference = torch.zeros(1, 2, 2)
    ours = reference.clone()
    ours[0, 1, 1] = bad
    baseline = Baseline(PROBE, reference, Floor(1e-5, 1e-6))
    assert not judge(NOBODY, baseline, ours).passed
    assert judge(NOBODY, baseline, reference).passed


def test_a_floor_that_is_no_number_passes_nothing() -> None:
    baseline = Baseline(PROBE, torch.zeros(1, 2, 2), Floor(math.inf, math.inf))
    assert not judge(NOBODY, baseline, torch.ones(1, 2, 2)).passed


def test_another_shape_never_passes() -> None:
    baseline = Baseline(PROBE, torch.zeros(1, 2, 2), Floor(1e-5, 1e-6))
    assert not judge(NOBODY, baseline, torch.zeros(1, 2, 3)).passed


def by_position(logits: torch.Tensor, reference: torch.Tensor, probe: Probe = PROBE) -> tuple[float, ...]:
    return judge(NOBODY, Baseline(probe, reference, Floor(0.5, 0.5)), logits).by_position


def test_deviations_by_position_by_hand() -> None:
    """In floors of 0.5: the largest of any row at a position, where it is no padding."""
    rows = torch.tensor([[1, 2, 3], [4, 5, 6]])
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    ours = torch.zeros(2, 3, 2)
    ours[0, 0, 0], ours[0, 1, 1], ours[1, 1, 0], ours[1, 2, 0] = 100.0, -2.0, 1.0, 4.0
    probe = Probe("p", "a test", rows, attention_mask=mask)
    assert by_position(ours, torch.zeros(2, 3, 2), probe) == (0.0, 4.0, 8.0)


def test_deviations_by_position_are_finite_or_infinite_or_none() -> None:
    reference = torch.zeros(1, 2, 2)
    ours = reference.clone()
    ours[0, 1, 0] = math.nan
    assert by_position(ours, reference) == (0.0, math.inf)
    assert by_position(torch.zeros(1, 2, 3), reference) == ()


def test_what_leaves_probabilities_as_they_are_is_no_deviation_at_a_position() -> None:
    reference = torch.zeros(1, 2, 2)
    assert by_position(reference + 100, reference) == (0.0, 0.0)


def test_times_takes_the_worse_of_both_norms() -> None:
    floor = Floor(max_abs=1e-4, rms=1e-5)
    assert floor.times(Deviation(2e-4, 9e-5, 0, 1)) == pytest.approx(9)
    assert floor.times(Deviation(9e-4, 2e-5, 0, 1)) == pytest.approx(9)


def test_the_floor_is_what_one_ulp_does(checkpoint: Checkpoint) -> None:
    """Measured again here, by hand, with torch.nextafter: the gate's floor lies within a small factor."""
    reference = Reference(checkpoint("llama-default"))
    probe = Probe("p", "a test", torch.randint(0, 211, (1, 64), generator=torch.Generator().manual_seed(5)))
    (baseline,), runs = measure(reference, [probe], lambda _step: None)
    generator = torch.Generator().manual_seed(99)
    with torch.no_grad():
        for weight in reference.model.parameters():
            up = torch.rand(weight.shape, generator=generator) < 0.5
            target = torch.where(up, torch.full_like(weight, math.inf), torch.full_like(weight, -math.inf))
            weight.copy_(torch.nextafter(weight, target))
    by_hand = float((reference.logits(probe) - baseline.logits).abs().max())
    assert baseline.floor.max_abs / 4 < by_hand < baseline.floor.max_abs * 4
    assert [run.name for run in runs] == ["one unit in the last place", "fused attention", "fp64"]
    assert all(run.times_floor < 2 * BOUND for run in runs)
