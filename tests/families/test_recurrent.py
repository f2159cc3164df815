"""Recurrent mixers and shared branches: sizes counted by hand, and figures that their authors give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archc.analysis.report import build_report
from archc.architecture import Architecture, compile_text
from archc.importing.convert import convert
from archc.parts.caches import ConvCache, ConvTailCache, StateCache
from archc.spec.diagnostics import SpecError

HEADER = {
    "archc": 1,
    "name": "hybrid",
    "vocab_size": 20,
    "hidden_size": 8,
    "context": 64,
    "dtype": "bfloat16",
    "embedding": {"tied": True},
    "norm": {"kind": "rmsnorm", "eps": 1e-5},
    "layers": 1,
}
MIXERS: dict[str, dict[str, Any]] = {
    "mamba": {"width": 16, "state": 3, "rank": 2, "kernel": 4},
    "mamba2": {"heads": 4, "head_dim": 5, "groups": 2, "state": 3, "kernel": 4, "output_norm": {}},
    "gated_delta": {"key_heads": 2, "value_heads": 4, "key_dim": 3, "value_dim": 5, "kernel": 4, "gate": "silu"},
    "kda": {"heads": 2, "head_dim": 3, "kernel": 4, "gate": "sigmoid", "decay_rank": 7, "gate_rank": 5},
    "lightning": {"heads": 2, "head_dim": 3, "activation": "silu", "chunk": 7},
    "rg_lru": {"width": 12, "blocks": 3, "kernel": 4, "activation": "gelu_tanh"},
    "short_conv": {"kernel": 3},
    "rwkv": {"width": 10},
    "mlstm": {"heads": 2, "key_dim": 3, "value_dim": 5},
}


def built(**sections: Any) -> Architecture:
    return compile_text(json.dumps({**HEADER, **sections})).architecture


def mixer(kind: str, **changes: Any) -> Any:
    (part,) = built(mixer={"kind": kind, **MIXERS[kind], **changes}, ffn=None).parts()
    return part


def parameters(part: Any) -> int:
    return sum(tensor.size for tensor in part.tensors() if not tensor.buffer)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        # in, taps and bias, x_proj, dt_proj and bias, A, D, out
        ("mamba", 8 * 32 + 16 * 5 + 16 * (2 + 6) + 16 * 2 + 16 + 16 * 3 + 16 + 16 * 8),
        # in (z 20, x 20, B and C 12, dt 4), taps and bias over 32, A, D and dt bias, norm, out
        ("mamba2", 8 * 56 + 32 * 5 + 3 * 4 + 20 + 20 * 8),
        # q and k 6 each, v and z 20 each, a and b 4 each; taps over 32; A and dt bias; norm; out
        ("gated_delta", 8 * (6 + 6 + 20 + 20 + 4 + 4) + 32 * 4 + 2 * 4 + 5 + 20 * 8),
        # q, k, v 6 each, b; taps over 18; decay 8→7→6, gate 8→5→6; A per head, dt bias per channel; norm; out
        ("kda", 8 * (18 + 2) + 18 * 4 + 7 * (8 + 6) + 5 * (8 + 6) + 2 + 6 + 3 + 6 * 8),
        ("lightning", 8 * 6 * 5 + 6),
        # x, y with biases; taps and bias; two gates of 3 blocks of 4 × 4 and biases; decay; out and bias
        ("rg_lru", 2 * (8 * 12 + 12) + 12 * 5 + 2 * (3 * 16 + 12) + 12 + 12 * 8 + 8),
        ("short_conv", 8 * 24 + 8 * 3 + 8 * 8),
        ("rwkv", 2 * 10 + 3 * 8 + 4 * 8 * 10),
        # q, k 6 each, v and output gate 10 each, i and f with biases, norm, out
        ("mlstm", 8 * (6 + 6 + 10 + 10) + 2 * (8 * 2 + 2) + 10 + 10 * 8),
    ],
)
def test_parameters_by_hand(kind: str, count: int) -> None:
    assert parameters(mixer(kind)) == count


def test_a_lightning_layer_stores_its_decays() -> None:
    buffers = [tensor.size for tensor in mixer("lightning").tensors() if tensor.buffer]
    assert sum(buffers) == 2 * (1 + 7 + 7 + 7 * 7)


@pytest.mark.parametrize(
    ("kind", "caches"),
    [
        ("mamba", (ConvCache(16, 4), StateCache(16 * 3))),
        ("mamba2", (ConvCache(20 + 2 * 2 * 3, 4), StateCache(4 * 5 * 3))),
        ("gated_delta", (ConvCache(6 + 6 + 20, 4), StateCache(4 * 3 * 5))),
        ("kda", (ConvCache(18, 4), StateCache(2 * 3 * 3))),
        ("lightning", (StateCache(2 * 3 * 3),)),
        ("rg_lru", (ConvTailCache(12, 4), StateCache(12))),
        ("short_conv", (ConvCache(8, 3),)),
        ("rwkv", (ConvTailCache(8, 2), StateCache(3 * 10))),
        ("mlstm", (StateCache(2 * (3 * 5 + 3 + 1)),)),
    ],
)
def test_caches_by_hand(kind: str, caches: tuple[Any, ...]) -> None:
    assert mixer(kind).caches() == caches


def test_a_convolution_keeps_a_column_less_than_its_kernel() -> None:
    assert (ConvCache(6, 4).fixed, ConvCache(6, 4).reference_held(9)) == (18, 24)
    assert (ConvTailCache(6, 4).fixed, ConvTailCache(6, 4).reference_held(9)) == (18, 18)


@pytest.mark.parametrize(
    ("kind", "operations"),
    [
        ("mamba", 6 * 16 * 3),
        ("mamba2", 5 * 4 * 5 * 3),
        ("gated_delta", 7 * 4 * 3 * 5),
        ("kda", 7 * 2 * 3 * 3),
        ("lightning", 5 * 2 * 3 * 3),
        ("rg_lru", 2 * 12),
        ("short_conv", 0),
        ("rwkv", 11 * 10),
        ("mlstm", 5 * 2 * 3 * (5 + 1)),
    ],
)
def test_the_recurrence_costs_the_same_at_every_length(kind: str, operations: int) -> None:
    for context in (1, 64):
        report = build_report(built(mixer={"kind": kind, **MIXERS[kind]}, ffn=None), context=context)
        head = 2 * 20 * 8
        assert report["flops"]["decode_per_token"] == head + mixer(kind).linear_flops() + operations


@pytest.mark.parametrize("kind", ["mamba", "gated_delta", "kda", "lightning", "mlstm"])
def test_every_weight_of_a_projection_works_once_per_token(kind: str) -> None:
    part = mixer(kind)
    weights = [tensor for tensor in part.tensors() if len(tensor.shape) > 1 and not tensor.buffer]
    products = sum(tensor.size for tensor in weights if tensor.name != "a_log")
    assert part.linear_flops() == 2 * products


@pytest.mark.parametrize(
    ("kind", "change", "code"),
    [
        ("mamba", {"heads": 3}, "E203"),
        ("mamba2", {"groups": 3}, "E201"),
        ("gated_delta", {"value_heads": 3}, "E201"),
        ("rg_lru", {"blocks": 5}, "E203"),
    ],
)
def test_groups_must_be_equal(kind: str, change: dict[str, int], code: str) -> None:
    with pytest.raises(SpecError, match=code):
        mixer(kind, **change)


def test_side_by_side_parts_are_one_branch() -> None:
    attention = {"heads": 2}
    both = built(position={"kind": "none"}, attention=attention, mixer={"kind": "mamba", **MIXERS["mamba"]}, ffn=None)
    (branch,) = both.layers[0].branches
    assert [slot for slot, _ in branch.parts] == ["attention", "mixer"]
    assert sum(tensor.size for tensor in both.layer_tensors()) == 8 + 4 * 8 * 8 + parameters(mixer("mamba"))


def shared_stack(**more: Any) -> Architecture:
    attention = {"heads": 2, "head_dim": 4, "adapter_rank": 3}
    branch = {"attention": attention, "reads": "stream_and_embedding", **more}
    return built(position={"kind": "none"}, block=[branch], layers=3)


def test_a_shared_branch_is_counted_once_and_remembers_per_use() -> None:
    projections = 3 * 16 * 8 + 8 * 8  # q, k and v read the stream and the embedding
    adapters = 3 * 3 * (16 + 8)
    alone, together = shared_stack(), shared_stack(shared="everywhere")
    sizes = [sum(tensor.size for tensor in stack.layer_tensors()) for stack in (alone, together)]
    assert sizes == [3 * (16 + projections + adapters), 16 + projections + 3 * adapters]
    reports = [build_report(stack, context=10) for stack in (alone, together)]
    assert [report["params"]["total"] for report in reports] == [size + 20 * 8 + 8 for size in sizes]
    assert {report["kv_cache"]["bytes_at_context"] for report in reports} == {3 * 2 * 8 * 10 * 2}
    assert reports[0]["flops"] == reports[1]["flops"]


def test_only_attention_can_read_the_embedding() -> None:
    ffn = {"kind": "mlp", "width": 4, "activation": "gelu"}
    with pytest.raises(SpecError, match="reads"):
        built(block=[{"ffn": ffn, "reads": "stream_and_embedding"}])


def test_mamba_130m() -> None:
    """https://huggingface.co/state-spaces/mamba-130m-hf: 129,135,360 parameters."""
    config = {"model_type": "mamba", "num_hidden_layers": 24, "hidden_size": 768, "vocab_size": 50280}
    report = build_report(compile_text(convert(config, "mamba").text).architecture, context=100)
    assert report["params"]["total"] == 129_135_360
    assert report["kv_cache"]["bytes_per_token"] == 0


def test_qwen3_next_80b() -> None:
    """The defaults of the class are those of Qwen3-Next-80B-A3B: 36 of 48 layers have a fixed state."""
    config = {"model_type": "qwen3_next", "dtype": "bfloat16"}
    report = build_report(compile_text(convert(config, "qwen").text).architecture, context=32768)
    states = 36 * (32 * 128 * 128 + (2 * 16 * 128 + 32 * 128) * 3)
    assert report["kv_cache"]["fixed_state_bytes"] == 2 * states == 39_518_208
    assert report["kv_cache"]["bytes_at_context"] == 2 * (states + 12 * 2 * 2 * 256 * 32768)
    assert report["params"]["total"] == 79_674_391_296
