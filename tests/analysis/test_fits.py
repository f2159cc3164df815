"""What fits into a memory: the figures are the largest that do, and by hand."""

from typing import Any

import pytest

from archc.analysis import build_report
from archc.analysis.fits import Fits
from archc.architecture import compile_spec, compile_text
from tests.analysis.specs import CONV, HYBRID, PLAIN, RECURRENT, STATE, WINDOWED

GIB = 2**30
LLAMA = 2 * 8_030_261_248


def fits(text: str, memory: int, **options: Any) -> Fits:
    architecture = compile_text(text).architecture if "\n" in text else compile_spec(text).architecture
    return build_report(architecture, fits=memory, **options)["fits"]


def weights(text: str) -> int:
    return build_report(compile_text(text).architecture)["weights"]["bytes"]


def test_llama3_by_hand() -> None:
    """131,072 bytes a token and 1 GiB for 8,192 of them."""
    found = fits("llama3-8b", 80 * GIB)
    assert found["remaining_bytes"] == 80 * GIB - LLAMA
    assert found["largest_batch"] == (80 * GIB - LLAMA) // GIB == 65
    assert found["largest_context"] == (80 * GIB - LLAMA) // 131_072 == 532_827
    assert not found["within_trained_context"]


def test_the_last_byte_decides() -> None:
    exactly = LLAMA + 3 * GIB
    assert fits("llama3-8b", exactly)["largest_batch"] == 3
    assert fits("llama3-8b", exactly - 1)["largest_batch"] == 2
    assert fits("llama3-8b", exactly)["largest_context"] == 3 * 8192
    assert fits("llama3-8b", exactly - 1)["largest_context"] == 3 * 8192 - 1


def test_batch_context_and_types_count() -> None:
    memory = LLAMA + 3 * GIB
    assert fits("llama3-8b", memory, batch=2)["largest_context"] == 3 * 8192 // 2
    assert fits("llama3-8b", memory, context=4096)["largest_batch"] == 6
    assert fits("llama3-8b", memory, kv_dtype="float8")["largest_batch"] == 6
    assert fits("llama3-8b", memory, dtype="int8")["largest_batch"] == (memory - LLAMA // 2) // GIB


def test_weights_that_do_not_fit() -> None:
    found = fits("llama3-8b", LLAMA - 1)
    assert (found["weights_fit"], found["remaining_bytes"]) == (False, 0)
    assert (found["largest_batch"], found["largest_context"]) == (0, 0)
    assert fits("llama3-8b", LLAMA)["weights_fit"]
    assert fits("llama3-8b", LLAMA)["largest_context"] == 0


def test_a_learned_table_is_a_wall() -> None:
    assert fits("gpt2", 80 * GIB)["largest_context"] == 1024
    assert fits("gpt2", 80 * GIB)["within_trained_context"]
    assert fits("gpt2", 4 * 124_439_808 + 10 * 73_728)["largest_context"] == 10


def test_windows_stop_growing() -> None:
    """Mistral 7B: 4,096 rows of 131,072 bytes a sequence at any length."""
    most = 2 * 7_241_732_096 + 4096 * 131_072
    assert fits("mistral-7b", most)["largest_context"] is None
    assert not fits("mistral-7b", most)["within_trained_context"]
    assert fits("mistral-7b", most - 1)["largest_context"] == 4095
    assert fits("mistral-7b", most - 1)["largest_batch"] == 0


def test_windows_and_full_layers() -> None:
    """Five layers keep 3 rows of 16 bytes, one keeps all."""
    assert fits(WINDOWED, weights(WINDOWED) + 16 * (5 * 3 + 100))["largest_context"] == 100
    assert fits(WINDOWED, weights(WINDOWED) + 16 * (6 * 2 + 5))["largest_context"] == 2


def test_states_are_paid_first() -> None:
    fixed = 2 * 2 * (CONV + STATE)
    assert fits(HYBRID, weights(HYBRID) + fixed + 7 * 16)["largest_context"] == 7
    assert fits(HYBRID, weights(HYBRID) + fixed - 1)["largest_context"] == 0
    assert fits(RECURRENT, weights(RECURRENT) + 5 * fixed)["largest_batch"] == 5
    assert fits(RECURRENT, weights(RECURRENT) + fixed)["largest_context"] is None


def test_a_cache_that_shrinks_at_times() -> None:
    """Positions wait to be condensed by sevens; every length up to the answer fits, and the next does not."""
    text = f"""{PLAIN.split("attention")[0]}
attention:
  kind: compressed
  heads: 2
  head_dim: 4
  q_rank: 6
  output_groups: 1
  output_rank: 5
  window: 3
  sinks: column
  query_norm: {{}}
  compression: {{rate: 7, overlap: false}}
ffn: {{kind: gated, activation: silu, width: 6}}
layers: 2
"""
    architecture = compile_text(text).architecture
    held = [build_report(architecture, context=c)["kv_cache"]["bytes_at_context"] for c in range(1, 400)]
    assert held != sorted(held)  # it does shrink
    for room in (0, 100, 333, 500, 700):
        expected = next(index for index, size in enumerate(held) if size > room)
        assert fits(text, weights(text) + room)["largest_context"] == expected


def test_what_is_left_out_is_said() -> None:
    assert any("activations" in line for line in fits("gpt2", GIB)["leaves_out"])


@pytest.mark.parametrize("text", [PLAIN, WINDOWED, HYBRID, RECURRENT])
@pytest.mark.parametrize("room", [1, 99, 1000, 12_345])
def test_against_trying_them_all(text: str, room: int) -> None:
    architecture = compile_text(text).architecture
    found = fits(text, weights(text) + room)

    def held(context: int, batch: int) -> int:
        return build_report(architecture, context=context, batch=batch)["kv_cache"]["bytes_at_context"]

    assert found["largest_batch"] == next(n for n in range(2000) if held(16, n + 1) > room)
    longest = next((n for n in range(2000) if held(n + 1, 1) > room), None)
    assert found["largest_context"] == longest
