"""The gate on tiny checkpoints of Hugging Face's own classes: clean ports pass, every planted mistake fails."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from archc.architecture import compile_text
from archc.render.validation_json import gate_document
from archc.validation.gate import GateResult, run_gate
from tests.tiny import BY_NAME, TINY

Checkpoint = Callable[[str], Path]


def gate(name: str, folder: Path, *overrides: str) -> GateResult:
    return run_gate(compile_text(BY_NAME[name].text(), name, overrides), folder, lambda _step: None)


@pytest.mark.parametrize("name", [tiny.name for tiny in TINY])
def test_a_clean_port_passes(name: str, checkpoint: Checkpoint) -> None:
    result = gate(name, checkpoint(name))
    assert result.passed
    assert [probe.probe.name for probe in result.probes if not probe.passed] == []
    assert {probe.probe.chunks is not None for probe in result.probes} == {True, False}
    assert result.divergence is None


# What each mistake does to a port is known from public trackers; all of them load without an error.
MISTAKES = [
    ("gpt2", "norm.eps=1.0e-3"),
    ("gpt2", "ffn.activation=gelu"),
    ("gpt2", "norm.kind=rmsnorm"),
    ("llama-default", "position.pairing=interleaved"),
    ("llama-default", "attention.grouping=tiled"),
    ("llama-default", "position.base=5400"),
    ("llama-default", "norm.eps=2.9e-3"),
    ("llama-default", "norm.kind=layernorm"),
    ("llama-default", "attention.scale=0.26"),
    ("llama-default", "ffn.activation=gelu"),
    ("llama-default", "norm.weight=one_plus"),
    ("llama-default", "position=null"),
    ("llama-default", "embedding.scale=1.01"),
    ("llama-default", "logits.scale=1.001"),
    ("llama-default", "residual.branch=0.999"),
    ("llama-linear", "position.scaling=null"),
    ("llama-dynamic", "position.scaling=null"),
    ("llama-dynamic", "position.scaling.factor=2.9"),
    ("llama-llama3", "position.scaling.high_freq_factor=3"),
    ("llama-llama3", "position.scaling.factor=4.9"),
    ("llama-yarn", "position.scaling.attention_factor=1"),
    ("llama-yarn-mscale", "position.scaling.mscale_all_dim=0.8"),
    ("llama-longrope", "position.scaling.factor=3.6"),
    ("mistral-window", "attention.window=8"),
    ("mistral-window", "attention.window=6"),
    ("mistral-window", "attention.window=null"),
    ("qwen3", "attention.qk_norm.order=after_rope"),
    ("qwen3_moe", "ffn.router.renormalize=true"),
    ("qwen3_moe", "ffn.router.order=top_k_then_score"),
    ("qwen3_moe", "ffn.router.score=sigmoid"),
    ("qwen3_moe", "ffn.top_k=2"),
    ("mixtral", "ffn.router.scale=1.001"),
    ("gemma2", "attention.softcap=1.8"),
    ("gemma2", "attention.softcap=null"),
    ("gemma2", "logits.softcap=null"),
    ("gemma3_text", "layers.kinds.local.position.base=701"),
    ("gemma3_text", 'layers.pattern="global, local, local"'),
    ("phi3-longrope", "position.pairing=interleaved"),
    ("phi3-longrope", "attention.window=12"),
]


@pytest.mark.parametrize(("name", "override"), MISTAKES)
def test_a_planted_mistake_fails(name: str, override: str, checkpoint: Checkpoint) -> None:
    result = gate(name, checkpoint(name), override)
    assert result.manifest.passed, "the probes must see it, not a missing tensor"
    assert not result.passed
    assert result.divergence is not None


def test_the_first_divergence_names_the_layer(checkpoint: Checkpoint) -> None:
    """Only the middle layer of gemma3_text is global: a wrong base there turns queries of layer 1, and no other."""
    result = gate("gemma3_text", checkpoint("gemma3_text"), "layers.kinds.global.position.base=5400")
    assert result.divergence is not None
    assert (result.divergence.layer, result.divergence.point) == (1, "layers.1.mixer.q")


def test_a_wrong_head_stops_before_anything_runs(checkpoint: Checkpoint) -> None:
    result = gate("llama-default", checkpoint("llama-default"), "attention.kv_heads=3")
    assert not result.passed
    assert result.probes == []
    shapes = {(wrong.name, wrong.declared, wrong.stored) for wrong in result.manifest.wrong_shape}
    assert ("model.layers.0.self_attn.k_proj.weight", (48, 72), (32, 72)) in shapes


def test_a_tensor_too_few_and_one_too_many(checkpoint: Checkpoint) -> None:
    biased = gate("llama-default", checkpoint("llama-default"), "attention.bias=all")
    assert "model.layers.0.self_attn.q_proj.bias" in biased.manifest.missing
    bare = gate("llama-biased", checkpoint("llama-biased"), "attention.bias=none")
    assert "model.layers.0.self_attn.q_proj.bias" in bare.manifest.unexpected
    assert not biased.passed
    assert not bare.passed


def test_the_reference_disagreeing_with_itself_is_said(checkpoint: Checkpoint) -> None:
    """Dynamic scaling rotates cached keys by other frequencies than a full pass (transformers#25104)."""
    assert (gate("llama-dynamic", checkpoint("llama-dynamic")).disagreement or 0) > 8
    assert (gate("llama-default", checkpoint("llama-default")).disagreement or 0) < 8


def test_a_fused_kernel_without_soft_cap_does_not_widen_the_floor(checkpoint: Checkpoint) -> None:
    """torch's scaled_dot_product_attention knows no soft cap: it cannot count as arithmetic for Gemma 2."""
    result = gate("gemma2", checkpoint("gemma2"))
    assert all(run.left_out for run in result.floor_runs if run.name == "fused attention")
    assert all(probe.floor.max_abs < 1e-3 for probe in result.probes)


def test_json_has_the_contract_s_keys_and_no_infinities(checkpoint: Checkpoint) -> None:
    document = gate_document(gate("qwen3", checkpoint("qwen3"), "position.base=5400"))
    assert set(document) >= {
        "passed", "reference", "port", "spec", "probes", "first_divergence", "fields", "faults", "diagnosis",
        "invariants", "manifest", "seconds", "peak_memory_bytes",
    }  # fmt: skip
    text_form = json.dumps(document, allow_nan=False)
    assert json.loads(text_form)["passed"] is False
    probe = document["probes"][0]  # type: ignore[index]
    assert set(probe) == {
        "name",
        "purpose",
        "tokens",
        "floor",
        "deviation",
        "times_floor",
        "passed",
        "flips",
        "shifted",
        "by_position",
    }
    assert math.isfinite(probe["floor"]["max_abs"])
    worst = max(probe["by_position"]["times_floor"])
    assert worst == pytest.approx(probe["deviation"]["max_abs"] / probe["floor"]["max_abs"])
