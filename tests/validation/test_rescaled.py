"""Rescaled checkpoints: on them shows what the given weights hide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from archc.architecture import compile_text
from archc.faults.catalogue import CATALOGUE
from archc.validation.gate import GateResult, run_gate
from archc.validation.python_port import PythonPort
from archc.validation.rescaled import RESCALINGS, write_rescaled
from tests.tiny import BY_NAME
from tests.validation.conftest import Checkpoint

NAME = "llama-default"


@pytest.fixture(scope="module")
def loud(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose embedding is so large that the eps of the final norm is below the last digit."""
    folder, source = tmp_path_factory.mktemp("loud"), checkpoint(NAME)
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())
    tensors = load_file(source / "model.safetensors")
    tensors["model.embed_tokens.weight"] *= 2.0**6
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def gate(folder: Path, plant: Any) -> GateResult:
    def load(weights: Path, dtype: torch.dtype) -> Any:
        model = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager")
        plant(model)
        return model.eval()

    return run_gate(
        compile_text(BY_NAME[NAME].text()),
        folder,
        lambda _step: None,
        open_port=lambda _architecture, place: PythonPort("port", load, place),
        catalogue=CATALOGUE,
    )


def wrong_eps(model: Any) -> None:
    model.model.norm.variance_epsilon = 1e-6


def test_a_wrong_eps_that_these_weights_hide_is_caught_and_named(loud: Path) -> None:
    result = gate(loud, wrong_eps)
    assert [one.probe.name for one in result.probes if not one.passed] == ["small weights"]
    assert result.diagnosis is not None
    assert [one.fault.id for one in result.diagnosis.found[0].mutants] == ["final_norm_eps"]
    assert not result.passed


def test_a_right_port_passes_on_them_too(loud: Path) -> None:
    result = gate(loud, lambda _model: None)
    assert result.passed
    assert "small weights" in [one.probe.name for one in result.probes]
    assert result.adequacy is not None
    assert not result.adequacy.survived
    assert "final_norm_eps" in result.observed


@pytest.mark.parametrize("rescaling", RESCALINGS, ids=lambda one: one.name)
def test_matrices_are_rescaled_and_nothing_else(checkpoint: Checkpoint, tmp_path: Path, rescaling: Any) -> None:
    write_rescaled(compile_text(BY_NAME[NAME].text()).architecture, checkpoint(NAME), tmp_path, rescaling)
    before, after = (load_file(place / "model.safetensors") for place in (checkpoint(NAME), tmp_path))
    changed = {name for name in before if not before[name].equal(after[name])}
    small = ("embed_tokens.weight", "o_proj.weight", "down_proj.weight")
    large = ("lm_head.weight", "q_proj.weight", "k_proj.weight", "gate_proj.weight", "up_proj.weight")
    assert changed == {name for name in before if name.endswith(small if rescaling.factor < 1 else large)}
    assert all(after[name].equal(before[name] * rescaling.factor) for name in changed)
