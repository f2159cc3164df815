"""Manifests against what Hugging Face's own classes really save."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.utils import logging

from archc.architecture import compile_text
from archc.checkpoints.headers import read_checkpoint
from archc.checkpoints.manifest import UnstorableError, build_manifest, pattern_of, stored_entries
from archc.validation.static import compare_manifest
from tests.tiny import BY_NAME, TINY

MIXED = """archc: 1
name: mixed
vocab_size: 99
hidden_size: 48
context: 64
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1e-6}
position: {kind: rope, base: 10000}
attention: {heads: 6, kv_heads: 2}
ffn: {kind: gated, activation: silu, width: 80}
layers:
  count: 2
  kinds:
    dense: null
    moe: {ffn: {kind: moe, experts: 5, top_k: 2, width: 16, router: {score: softmax, renormalize: true}}}
  pattern: dense, moe
"""


@pytest.mark.parametrize("name", [tiny.name for tiny in TINY])
def test_every_name_and_shape_is_what_transformers_saves(name: str, tmp_path: Path) -> None:
    logging.disable_progress_bar()
    BY_NAME[name].save(tmp_path)
    architecture = compile_text(BY_NAME[name].text()).architecture
    entries = {entry.name: entry for entry in stored_entries(architecture, build_manifest(architecture))}
    stored = {name: tensor.shape for name, tensor in read_checkpoint(tmp_path).items()}
    assert {name: entry.shape for name, entry in entries.items()} == stored


def test_a_design_without_a_family_has_its_own_names_and_stacked_experts() -> None:
    architecture = compile_text(MIXED).architecture
    entries = {entry.name: entry for entry in stored_entries(architecture, build_manifest(architecture))}
    assert {tensor.name: tensor.shape for tensor in architecture.tensors()} == {
        name: entry.shape for name, entry in entries.items()
    }
    assert entries["layers.0.ffn.down.weight"].shape == (48, 80)
    assert entries["layers.1.ffn.down"].shape == (5, 48, 16)


def test_a_family_without_a_name_for_a_tensor_refuses_the_design() -> None:
    with pytest.raises(UnstorableError, match=r"llama stores no layers\.N\.ffn\.down\b"):
        build_manifest(compile_text(MIXED + "family: llama\n").architecture)


def test_the_manifest_does_not_grow_with_the_model() -> None:
    """A hostile spec of a few lines asks for 10,000 layers of 2^40 experts: that costs nothing."""
    huge = MIXED.replace("count: 2", "count: 10000").replace("dense, moe", "5000*(dense, moe)")
    huge = huge.replace("experts: 5", f"experts: {2**40}") + "family: qwen3_moe\n"
    architecture = compile_text(huge).architecture
    assert len(build_manifest(architecture).table) < 40
    result = compare_manifest(architecture, {})
    assert not result.passed
    assert len(result.missing) == 1000


def test_patterns() -> None:
    assert pattern_of("layers.3.ffn.gate") == "layers.N.ffn.gate"
    assert pattern_of("a.0.b.17.c.weight") == "a.N.b.E.c.weight"
    assert pattern_of("norm1.weight") == "norm1.weight"
