"""Claims: a published figure either follows from the spec or is reported."""

import pytest

from archc.analysis import ClaimResult, build_report, compare_claims
from archc.architecture import compile_text
from tests.analysis.specs import PLAIN


def result(claims: str) -> list[ClaimResult]:
    text = f"{PLAIN}published:\n{claims}"
    architecture = compile_text(text).architecture
    return compare_claims(architecture.claims, build_report(architecture))


def test_a_figure_that_follows() -> None:
    (found,) = result('  params.embedding: {value: 200, source: "20 × 10"}\n')
    assert found == ClaimResult("params.embedding", 200.0, 200, 0.0, True, "20 × 10")
    assert found.as_json()["claimed"] == 200


def test_a_figure_that_is_off_by_one() -> None:
    (found,) = result('  params.embedding: {value: 201, source: "a slip"}\n')
    assert not found.holds
    assert found.sentence() == "params.embedding is 200, published 201"


@pytest.mark.parametrize(("value", "holds"), [(190.5, True), (209.5, True), (190, False), (211, False)])
def test_a_rounded_figure_holds_within_its_tolerance(value: float, holds: bool) -> None:
    """Of the published figure: 5 % of 190.5 is 9.525, of 190 it is 9.5 < 10."""
    (found,) = result(f"  params.embedding: {{value: {value}, within: 0.05, source: rounded}}\n")
    assert found.holds is holds


def test_a_share() -> None:
    (found,) = result("  block.ffn_share: {value: 0.35, within: 0.02, source: by hand}\n")
    assert found.holds  # 180 of 520
    assert found.derived == pytest.approx(180 / 520)


@pytest.mark.parametrize(
    "key", ["params.totl", "params", "name", "params.total.x", "rope.scaling.unchanged", "moe.top_k"]
)
def test_a_key_without_a_figure_does_not_hold(key: str) -> None:
    (found,) = result(f"  {key}: {{value: 1, within: 0.99, source: a slip}}\n")
    assert not found.holds
    assert found.derived is None
    assert found.sentence() == f"the report has no figure {key}"


def test_all_are_compared_in_order() -> None:
    found = result("  params.head: {value: 1, source: x}\n  params.embedding: {value: 200, source: y}\n")
    assert [(one.key, one.holds) for one in found] == [("params.head", False), ("params.embedding", True)]
