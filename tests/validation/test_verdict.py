"""What the verdict says in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from archc.architecture import compile_text
from archc.render.validation import print_verdict
from archc.render.validation_json import gate_document
from archc.validation.gate import run_gate
from archc.validation.probes import Probe
from archc.validation.reference import Reference, Run
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


def verdict(name: str, folder: Path, capsys: pytest.CaptureFixture[str], *overrides: str) -> list[str]:
    capsys.readouterr()
    print_verdict(run_gate(compile_text(BY_NAME[name].text(), name, overrides), folder, lambda _step: None))
    return capsys.readouterr().out.splitlines()


def test_a_broken_invariant_says_what_was_expected(checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]) -> None:
    """Three layers of 2 × 2 heads × 16 channels: transformers keeps 6 positions of a window of 7, and 7 of 8."""
    lines = verdict("mistral-window", checkpoint("mistral-window"), capsys, "attention.window=8")
    size = next(line for line in lines if line.startswith("  cache size"))
    assert size.endswith("FAIL  1,344 declared, 1,152 in the reference, after 256 tokens")
    windows = next(line for line in lines if line.startswith("  windows"))
    assert windows.endswith("FAIL  layer 0: a window of 8 declared, a window of 7 in the reference")
    last = lines[-1]
    assert last.startswith("  FAIL: ")
    assert "times the noise floor" in last
    assert last.endswith("broken: cache size, windows")


def test_what_holds_is_said_without_figures_that_look_like_faults(
    checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = verdict("mistral-window", checkpoint("mistral-window"), capsys)
    for name in ("windows", "cache size"):
        assert next(line for line in lines if line.startswith(f"  {name}")).split() == [*name.split(), "pass"]
    assert lines[-1].startswith("  PASS: ")
    assert "broken" not in lines[-1]


def test_an_arithmetic_that_is_no_measure_is_not_blamed_on_the_port(
    checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch's fused attention knows no soft cap, and Gemma 2's class refuses it."""
    lines = verdict("gemma2", checkpoint("gemma2"), capsys)
    assert any("does not support fused attention: the floor is measured without it" in line for line in lines)


def test_where_the_reference_computes_something_else_the_floor_is_measured_without(
    checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits of 64 tokens in fp64, and those alone, are made another model's."""
    run = Reference.run

    def other_in_double(self: Reference, probe: Probe, *args: Any) -> Run:
        found = run(self, probe, *args)
        wrong = next(self.model.parameters()).dtype is torch.float64 and probe.tokens == 64
        return replace(found, logits=found.logits + 1) if wrong else found

    monkeypatch.setattr(Reference, "run", other_in_double)
    told = " ".join(line.strip() for line in verdict("llama-default", checkpoint("llama-default"), capsys))
    assert "the floor on 64 tokens is measured without fp64: there the reference itself computes" in told
    assert "PASS" in told


def test_fields_that_are_not_the_config_s_are_named(checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]) -> None:
    """A window as long as any input changes nothing, and is not what the config says all the same."""
    lines = verdict("llama-default", checkpoint("llama-default"), capsys, "attention.window=4096", "norm.eps=1.0e-3")
    told = " ".join(line.strip() for line in lines)
    assert (
        "spec and config.json differ: norm.eps 0.001 declared, 0.003 in config.json (stated there) in 3 layers" in told
    )
    assert "spec and config.json differ: attention.window 4096 declared, none in config.json in 3 layers" in told
    assert lines[-1].startswith("  FAIL: the spec and config.json differ in 2 fields; ")
    assert not any("config.json" in line for line in verdict("llama-default", checkpoint("llama-default"), capsys))


def test_the_json_lists_them(checkpoint: Checkpoint) -> None:
    compiled = compile_text(BY_NAME["llama-default"].text(), overrides=["position.base=5301"])
    document = gate_document(run_gate(compiled, checkpoint("llama-default"), lambda _step: None))
    assert document["static"] == [
        {"field": "position.base", "layers": [0, 1, 2], "declared": 5301.0, "config": 5300.0, "stated": True}
    ]
    assert document["norm_weights"] == []
