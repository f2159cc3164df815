"""Rotary tables: published periods and bands, and the frequencies that transformers computes."""

from math import tau

import pytest

from archc.analysis import build_report
from archc.analysis.rope import RopeSection
from archc.architecture import compile_spec, compile_text
from tests.analysis.specs import PLAIN, WINDOWED
from tests.layers import attention_of
from tests.tiny import BY_NAME


def rope(target: str, *changes: str, context: int | None = None) -> RopeSection:
    return build_report(compile_spec(target, changes).architecture, context=context)["rope"]


def test_smollm2_turns() -> None:
    """Base 100,000 over 64 channels: 2π, and 2π · 100,000^(62/64)."""
    found = rope("smollm2-135m")
    assert (found["pairs"], found["base"], found["pairing"]) == (32, 100_000, "half")
    assert found["fastest_period"] == pytest.approx(6.283, abs=0.001)
    assert found["slowest_period"] == pytest.approx(438_458, rel=1e-4)
    assert found["scaling"] is None


def test_another_base_turns_otherwise() -> None:
    assert rope("smollm2-135m", "position.base=10000")["slowest_period"] == pytest.approx(47_000, rel=0.01)


def test_llama31_bands() -> None:
    """Of 64 pairs, 29 stay, 6 are blended, 29 are slowed by 8 (Llama 3.1's config, by its published formula)."""
    found = rope("llama3.1-8b")
    assert found["scaling"] == {"kind": "llama3", "unchanged": 29, "blended": 6, "stretched": 29}
    plain = rope("llama3-8b")
    assert found["fastest_period"] == plain["fastest_period"]
    assert found["slowest_period"] == pytest.approx(8 * plain["slowest_period"])
    assert plain["scaling"] is None


def test_the_bands_follow_the_original_context() -> None:
    found = rope("llama3.1-8b", "position.scaling.original_context=4096")["scaling"]
    assert found is not None
    assert found["unchanged"] < 29
    assert found["unchanged"] + found["blended"] + found["stretched"] == 64


@pytest.mark.parametrize("name", ["llama-default", "llama-llama3", "llama-yarn", "llama-linear", "phi3-partial"])
def test_periods_are_those_of_transformers(name: str) -> None:
    frequencies = BY_NAME[name].model().model.rotary_emb.inv_freq.double()
    found = build_report(compile_text(BY_NAME[name].text()).architecture)["rope"]
    assert found["pairs"] == len(frequencies)
    assert found["fastest_period"] == pytest.approx(tau / frequencies.max().item(), rel=1e-6)
    assert found["slowest_period"] == pytest.approx(tau / frequencies.min().item(), rel=1e-6)


def test_the_length_chooses_the_table() -> None:
    """LongRoPE: factors 1.9 and 12.5 for the slowest pair, below and above the original 24 positions."""
    architecture = compile_text(BY_NAME["llama-longrope"].text()).architecture
    short = build_report(architecture, context=24)["rope"]["slowest_period"]
    long = build_report(architecture, context=25)["rope"]["slowest_period"]
    assert long / short == pytest.approx(12.5 / 1.9)


def test_kinds_that_differ_are_told_apart() -> None:
    found = build_report(compile_text(WINDOWED).architecture)["rope"]
    assert found["base"] == 100  # of the five local layers
    tables = found["by_kind"]
    assert {kind: table and table["base"] for kind, table in tables.items()} == {"local": 100, "global": 10_000}


def test_a_kind_that_does_not_rotate() -> None:
    text = WINDOWED.replace("position: {base: 100}", "position: null")
    found = build_report(compile_text(text).architecture)["rope"]
    assert found["base"] == 10_000  # of the one layer that does
    assert found["by_kind"]["local"] is None


def test_equal_kinds_have_one_table() -> None:
    text = WINDOWED.replace(", position: {base: 100}", "")
    assert "by_kind" not in build_report(compile_text(text).architecture)["rope"]


@pytest.mark.parametrize("position", ["{kind: learned}", "{kind: none}", "null"])
def test_without_rope_there_is_no_section(position: str) -> None:
    assert "rope" not in build_report(compile_text(PLAIN.replace("{kind: rope, base: 10000}", position)).architecture)


@pytest.mark.parametrize(
    ("scaling", "length_matters", "original_context"),
    [
        ("null", False, None),
        ("{kind: linear, factor: 2}", False, None),
        ("{kind: dynamic, factor: 2, original_context: 24}", True, 24),
        ("{kind: yarn, factor: 2, original_context: 24}", False, 24),
        (
            "{kind: llama3, factor: 2, original_context: 24, low_freq_factor: 1, high_freq_factor: 4}",
            False,
            24,
        ),
    ],
)
def test_what_a_scaling_says_of_itself(scaling: str, length_matters: bool, original_context: int | None) -> None:
    found = attention_of(compile_text(PLAIN, overrides=[f"position.scaling={scaling}"]).architecture.layers[0]).rope
    assert found is not None
    assert (found.length_matters, found.original_context) == (length_matters, original_context)


def test_longrope_depends_on_the_length() -> None:
    found = attention_of(compile_text(BY_NAME["llama-longrope"].text()).architecture.layers[0]).rope
    assert found is not None
    assert (found.length_matters, found.original_context) == (True, 24)
