"""What docs/why-archc.md compares: mistakes are mistakes, right ports are none, and all are in its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import gates, sizing_tools
from benchmarks.gate_mistakes import MISTAKES, RIGHT, load, port
from benchmarks.sizing_tools import times

PAGE = sizing_tools.PAGE.read_text(encoding="utf-8")
WEIGHTS = Path(__file__).parents[1] / "validators" / "weights" / "tiny"
BEYOND = 300
"""Tokens that reach past the context of tiny, where a table of positions ends."""
STEPS = {"restarts"}
PADDED = {"blind_to_padding"}
FAINT = {"final_eps"}
"""Within the floor on the weights as they are; it shows where they are small, and the gate has a probe for that."""


def outputs(name: str) -> list[torch.Tensor]:
    """Logits of a prompt past the context, of a step behind it, and of a batch padded on the left."""
    model = load(WEIGHTS) if name == "reference" else port(name, WEIGHTS)
    ids = torch.randint(0, 256, (1, BEYOND), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(1, 40, dtype=torch.long)
    mask[:, :8] = 0
    with torch.no_grad():
        whole = model(ids, use_cache=True)
        step = model(ids[:, :1], cache=whole.past_key_values, use_cache=True)
        padded = model(ids[:, :40], attention_mask=mask)
    return [whole.logits.float(), step.logits.float(), padded.logits[:, 8:].float()]


@pytest.fixture(scope="module")
def reference() -> list[torch.Tensor]:
    return outputs("reference")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one(name: str, reference: list[torch.Tensor]) -> None:
    whole, step, padded = (float((a - b).abs().max()) for a, b in zip(outputs(name), reference, strict=True))
    shows = step if name in STEPS else padded if name in PADDED else whole
    assert shows > (1e-5 if name in FAINT else 2e-4)
    assert (whole < 1e-6) == (name in STEPS | PADDED), "those show nowhere else"


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_port_is_none(name: str, reference: list[torch.Tensor]) -> None:
    assert all(float((a - b).abs().max()) < 2e-4 for a, b in zip(outputs(name), reference, strict=True))


def test_the_page_shows_all_of_them() -> None:
    for mistake in MISTAKES.values():
        assert f"\n| {mistake.words} | " in PAGE
    for name in sizing_tools.MODELS:
        assert PAGE.count(f"\n| {name} | ") == 2
    assert all(practice in PAGE for practice in gates.PRACTICES)


def test_how_figures_are_judged() -> None:
    assert times(1000, 1000, 5000) == "="
    assert times(1004, 1000, 1000) == "="
    assert times(1006, 1000, 1000) == "1.01×"
    assert times(5000, 1000, 5000) == "reserved"
    assert times(5500, 1000, 5000) == "1.10×", "the nearer of the two counts"
    assert times(25000, 1000, 1000) == "25.0×"
    assert times(None, 1000, 1000) == ""
