"""Mutation score: what the probes see of the mistakes that a model can have, and what they are blind to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.faults.catalogue import CATALOGUE
from archc.validation.adequacy import Adequacy, Bench, see_fields, try_mutants
from archc.validation.gate import GateResult, run_gate
from archc.validation.parity import measure
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe, derive_probes
from archc.validation.reference import Reference
from archc.validation.workshop import Workshop, mutants_of
from tests.tiny import BY_NAME
from tests.validation.conftest import Checkpoint


def bench_of(
    name: str, folder: Path, probes: list[Probe] | None = None, unreached: frozenset[str] = frozenset()
) -> Bench:
    architecture = compile_text(BY_NAME[name].text()).architecture
    return bench_for(architecture, folder, probes or derive_probes(architecture)[0], unreached)


def bench_for(
    architecture: Architecture, folder: Path, probes: list[Probe], unreached: frozenset[str] = frozenset()
) -> Bench:
    reference = Reference(folder)
    baselines, _ = measure(reference, probes, lambda _step: None)
    return Bench(
        reference, baselines, Workshop(architecture, GeneratedPort(architecture, folder)), lambda _s: None, unreached
    )


def tried(bench: Bench, *ids: str) -> Adequacy:
    mutants = mutants_of(bench.workshop.clean.architecture, [one for one in CATALOGUE if one.id in ids])
    assert {one.fault.id for one in mutants} == set(ids)
    return try_mutants(bench, mutants)


def whole_gate(name: str, folder: Path) -> GateResult:
    return run_gate(compile_text(BY_NAME[name].text()), folder, lambda _step: None, catalogue=CATALOGUE)


@pytest.mark.parametrize("name", ["llama-biased", "mistral-window", "gemma2", "qwen3_moe"])
def test_the_probes_see_every_mistake_that_a_model_can_have(name: str, checkpoint: Checkpoint) -> None:
    result = whole_gate(name, checkpoint(name))
    assert result.adequacy is not None
    assert not result.adequacy.survived
    assert result.adequacy.score == 1
    assert len(result.adequacy.killed) > 50
    assert {one.why for one in result.adequacy.equivalent} >= {"the model runs in 32 bits"}
    assert not result.blind
    assert result.strictly_passed
    assert {"norm.eps", "position.base", "attention.kv_heads", "ffn.activation", "hidden_size"} <= set(result.observed)


def test_a_short_prompt_is_blind_to_a_window(checkpoint: Checkpoint) -> None:
    """Five tokens are all in a window of seven: the mistake survives, and is not called equal."""
    folder, short = checkpoint("mistral-window"), Probe("5 tokens", "", torch.arange(1, 6)[None])
    found = tried(bench_of("mistral-window", folder, [short], frozenset({"attention.window"})), "attention.window")
    assert found.survived
    assert not found.killed
    assert not found.equivalent
    assert found.score == 0
    seen = tried(bench_of("mistral-window", folder), "attention.window")
    assert seen.killed
    assert not seen.survived


def test_a_cache_past_a_window_that_no_probe_decodes_across(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """48 tokens are decoded, and the window is 60: what goes wrong past it shows in the invariant alone."""
    folder = checkpoint("mistral-window")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "sliding_window": 60}))
    shutil.copy(folder / "model.safetensors", tmp_path)
    architecture = compile_text(BY_NAME["mistral-window"].text().replace("window: 7", "window: 60")).architecture
    probes, _ = derive_probes(architecture)

    found = tried(bench_for(architecture, tmp_path, probes), "cache.rows", "cache.window")
    assert len(found.killed) >= 5
    assert {one.probe for one in found.killed} == {"cache, window 60"}
    assert not found.survived + found.equivalent

    short = [one for one in probes if one.tokens <= 64]
    missed = tried(bench_for(architecture, tmp_path, short), "cache.rows", "cache.window")
    assert len(missed.survived) == len(found.killed)
    assert not missed.killed + missed.equivalent


def test_dropping_a_bias_of_zeros_is_no_mistake(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint("llama-biased")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    tensors = load_file(folder / "model.safetensors")
    zeroed = {
        key: torch.zeros_like(one) if "self_attn" in key and "bias" in key else one for key, one in tensors.items()
    }
    save_file(zeroed, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = tried(bench_of("llama-biased", tmp_path), "attention.bias")
    assert found.equivalent
    assert all("all zeros" in one.why for one in found.equivalent)
    assert tried(bench_of("llama-biased", folder), "attention.bias").killed


def test_an_untied_head_is_missed_when_weights_are_loaded(checkpoint: Checkpoint) -> None:
    found = tried(bench_of("gemma2", checkpoint("gemma2")), "embedding.tied.not")
    assert [one.why for one in found.loud] == ["it needs head.weight, which the checkpoint does not hold"]


def test_stated_fields_are_seen_by_what_flips_them(checkpoint: Checkpoint) -> None:
    """Without any catalogue, a field is seen if another value of it shows; with one short probe a window is not."""
    compiled = compile_text(BY_NAME["mistral-window"].text())
    bench = bench_of("mistral-window", checkpoint("mistral-window"))
    seen, blind = see_fields(bench, compiled.loaded, Adequacy())
    assert {"norm.eps", "position.base", "position.kind", "attention.window", "attention.kv_heads"} <= set(seen)
    assert not blind
    short = bench_of("mistral-window", checkpoint("mistral-window"), [Probe("5 tokens", "", torch.arange(1, 6)[None])])
    seen, blind = see_fields(short, compiled.loaded, Adequacy())
    assert "attention.window" not in seen
