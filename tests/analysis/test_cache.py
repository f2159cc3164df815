"""The KV cache: against published figures, transformers' own cache objects, and arithmetic by hand."""

from typing import Any

import pytest
import torch

from archc.analysis import build_report
from archc.analysis.cache import KvCache
from archc.architecture import compile_spec, compile_text
from tests.analysis.specs import CONV, HYBRID, PLAIN, RECURRENT, STATE, WINDOWED
from tests.tiny import BY_NAME

GIB = 2**30
LLAMA_31 = "llama3.1-8b"


def cache(target: str, **options: Any) -> KvCache:
    name, *changes = target.split()
    return build_report(compile_spec(name, changes).architecture, **options)["kv_cache"]


# 2 × layers × key/value heads × head dim, published with the models' side-by-side tables.
@pytest.mark.parametrize(
    ("target", "elements"),
    [
        ("gpt2", 18_432),
        ("smollm2-135m", 11_520),
        ("smollm2-135m attention.kv_heads=9", 34_560),
        ("llama3-8b", 65_536),
        ("qwen3-0.6b", 57_344),
    ],
)
def test_elements_per_token(target: str, elements: int) -> None:
    assert cache(target)["elements_per_token"] == elements


@pytest.mark.parametrize(
    ("kv_heads", "per_token_kib", "at_8192_gib", "at_131072_gib"),
    [(32, 512, 4, 64), (8, 128, 1, 16), (1, 16, 0.125, 2)],
)
def test_llama3_with_fewer_heads(kv_heads: int, per_token_kib: int, at_8192_gib: float, at_131072_gib: float) -> None:
    target = f"{LLAMA_31} attention.kv_heads={kv_heads}"
    assert cache(target)["bytes_per_token"] == per_token_kib * 1024
    assert cache(target, context=8192)["bytes_at_context"] == at_8192_gib * GIB
    assert cache(target, context=131072)["bytes_at_context"] == at_131072_gib * GIB


def test_type_and_batch() -> None:
    assert cache("gpt2", kv_dtype="float32")["bytes_per_token"] == 73_728  # 18,432 numbers of four bytes
    assert cache("llama3-8b", kv_dtype="float8", batch=4)["bytes_at_context"] == 4 * GIB // 2
    assert cache("llama3-8b", kv_dtype="int4")["bytes_per_token"] == 32_768


def test_the_type_is_that_of_the_spec_unless_given() -> None:
    architecture = compile_spec("llama3-8b").architecture
    assert build_report(architecture, dtype="float32")["kv_cache"]["dtype"] == "bfloat16"
    assert build_report(architecture, kv_dtype="float32")["weights"]["dtype"] == "bfloat16"


def test_mistral_stops_growing() -> None:
    """All layers see 4,096 positions (Jiang et al. 2023): past them, a token costs nothing more."""
    found = cache("mistral-7b")
    assert found["elements_per_token"] == found["bytes_per_token"] == 0
    assert found["window_bytes_per_token"] == 131_072
    assert found["bytes_at_context"] == 4096 * 131_072
    assert found["bytes_at_context_reserved"] == 32_768 * 131_072


def test_windows_by_hand() -> None:
    """Five layers keep 3 of 16 positions, one keeps all; a position is 2 × 1 head × 4 numbers of 2 bytes."""
    found = build_report(compile_text(WINDOWED).architecture, batch=3)["kv_cache"]
    assert found == {
        "dtype": "bfloat16",
        "state_dtype": "bfloat16",
        "elements_per_token": 8,
        "bytes_per_token": 16,
        "window_bytes_per_token": 5 * 16,
        "fixed_state_bytes": 0,
        "bytes_at_context": 3 * 16 * (5 * 3 + 16),
        "context": 16,
        "batch": 3,
        "reference_elements_at_context": 3 * 8 * (5 * 2 + 16),
        "bytes_at_context_reserved": 3 * 16 * 6 * 16,
        "by_kind": {
            "sliding": {
                "layers": 5,
                "elements_per_token": 0,
                "window_elements_per_token": 5 * 8,
                "fixed_elements": 0,
                "elements_at_context": 5 * 8 * 3,
            },
            "full": {
                "layers": 1,
                "elements_per_token": 8,
                "window_elements_per_token": 0,
                "fixed_elements": 0,
                "elements_at_context": 8 * 16,
            },
        },
    }


def test_a_context_within_the_window() -> None:
    found = build_report(compile_text(WINDOWED).architecture, context=2)["kv_cache"]
    assert found["bytes_at_context"] == found["bytes_at_context_reserved"] == 2 * 6 * 16


@pytest.mark.parametrize("context", [4, 30])
@pytest.mark.parametrize("name", ["gpt2", "llama-default", "mistral-window", "gemma2", "gemma3_text"])
def test_holds_what_transformers_holds(name: str, context: int) -> None:
    """`reference_elements_at_context` is what its cache object really contains after that many tokens."""
    tiny = BY_NAME[name]
    with torch.no_grad():
        held = tiny.model()(torch.ones(2, context, dtype=torch.long), use_cache=True).past_key_values
    elements = sum(layer.keys.numel() + layer.values.numel() for layer in held.layers)
    found = build_report(compile_text(tiny.text()).architecture, context=context, batch=2)["kv_cache"]
    assert found["reference_elements_at_context"] == elements


def test_transformers_keeps_one_row_less_than_the_window() -> None:
    """The twin: without the rule for windows, the comparison above would fail."""
    found = build_report(compile_text(BY_NAME["mistral-window"].text()).architecture, context=30)["kv_cache"]
    logical = found["bytes_at_context"] // 4
    assert found["reference_elements_at_context"] * 7 == logical * 6


def test_full_layers_keep_the_same_either_way() -> None:
    found = build_report(compile_text(PLAIN).architecture)["kv_cache"]
    assert found["reference_elements_at_context"] == found["elements_per_token"] * 16
    assert found["bytes_at_context"] == found["bytes_at_context_reserved"]


def test_states_by_hand() -> None:
    """Two layers keep four columns of a convolution and a state, whatever the length; one keeps 8 numbers a token."""
    found = build_report(compile_text(HYBRID).architecture, batch=3)["kv_cache"]
    assert found["bytes_per_token"] == 16
    assert found["window_bytes_per_token"] == 0
    assert found["fixed_state_bytes"] == 2 * 2 * (CONV + STATE)  # of one sequence, in bfloat16
    assert found["bytes_at_context"] == 3 * (16 * 16 + 2 * 2 * (CONV + STATE))
    assert {kind: (one["layers"], one["fixed_elements"]) for kind, one in found["by_kind"].items()} == {
        "convolution": (2, 2 * CONV),
        "state": (2, 2 * STATE),
        "full": (1, 0),
    }


def test_states_have_a_type_of_their_own() -> None:
    architecture = compile_text(HYBRID).architecture
    found = build_report(architecture, state_dtype="float32")["kv_cache"]
    assert (found["dtype"], found["state_dtype"]) == ("bfloat16", "float32")
    assert found["fixed_state_bytes"] == 2 * (2 * CONV + 4 * STATE)
    assert build_report(architecture, kv_dtype="float32")["kv_cache"]["fixed_state_bytes"] == 2 * 4 * (CONV + STATE)


def test_without_attention_nothing_grows() -> None:
    found = build_report(compile_text(RECURRENT).architecture, context=2**30)["kv_cache"]
    assert found["bytes_per_token"] == found["elements_per_token"] == 0
    assert found["bytes_at_context"] == found["fixed_state_bytes"] == 2 * 2 * (CONV + STATE)
    assert set(found["by_kind"]) == {"convolution", "state"}


def test_a_published_hybrid() -> None:
    """Qwen3-Next-80B-A3B: 805.7 MiB at 32,768, of which 39,518,208 bytes are fixed.

    By hand: 12 layers keep 2 × 2 heads × 256; 36 keep 32 states of 128 × 128 and three columns of 8,192 channels.
    """
    text = f"""{PLAIN.split("attention")[0]}
attention: {{heads: 16, kv_heads: 2, head_dim: 256}}
ffn: {{kind: gated, activation: silu, width: 6}}
layers:
  count: 48
  kinds:
    linear:
      attention: null
      mixer:
        {{kind: gated_delta, key_heads: 16, value_heads: 32, key_dim: 128, value_dim: 128, kernel: 4, gate: silu}}
    full: null
  pattern: 12*(3*linear, full)
"""
    found = build_report(compile_text(text).architecture, context=32_768)["kv_cache"]
    assert found["fixed_state_bytes"] == 39_518_208 == 2 * 36 * (32 * 128 * 128 + 3 * 8192)
    assert found["bytes_at_context"] == 2 * 12 * 1024 * 32_768 + 39_518_208
    assert round(found["bytes_at_context"] / 2**20, 1) == 805.7
    fewer = build_report(compile_text(text.replace("kernel: 4", "kernel: 3")).architecture, context=32_768)["kv_cache"]
    assert fewer["fixed_state_bytes"] != 39_518_208


@pytest.mark.parametrize("text", [PLAIN, WINDOWED, HYBRID, RECURRENT])
def test_kinds_add_up(text: str) -> None:
    found = build_report(compile_text(text).architecture)["kv_cache"]
    kinds = found["by_kind"].values()
    assert 2 * sum(one["elements_at_context"] for one in kinds) == found["bytes_at_context"]
    assert sum(one["elements_per_token"] for one in kinds) == found["elements_per_token"]
    assert 2 * sum(one["fixed_elements"] for one in kinds) == found["fixed_state_bytes"]
