"""Operations: against torch's operator counter on Hugging Face's models, and summed token by token."""

from fractions import Fraction

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from archc.analysis import build_report
from archc.analysis.flops import AllKeys, Flops, LastKeys, MeanKeys
from archc.architecture import Architecture, compile_spec, compile_text
from tests.analysis.specs import ATTENTION, FFN, MIXTURE, PLAIN, WINDOWED
from tests.tiny import BY_NAME, TINY, Tiny

TOKENS = 19


def flops(architecture: Architecture, context: int = TOKENS) -> Flops:
    return build_report(architecture, context=context)["flops"]


def counted(tiny: Tiny) -> int:
    """What torch counts in one forward pass of Hugging Face's eager model; it does not know grouped products."""
    model = tiny.model()
    model.set_experts_implementation("eager")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.ones(1, TOKENS, dtype=torch.long), use_cache=False)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.name)
def test_prefill_is_what_torch_counts(tiny: Tiny) -> None:
    assert flops(compile_text(tiny.text()).architecture)["prefill_full_square"] == counted(tiny)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama-default", "attention.kv_heads=3"),
        ("llama-default", "ffn.kind=mlp"),
        ("llama-default", "vocab_size=212"),
        ("gpt2", "layers=2"),
        ("qwen3", "attention.head_dim=12"),
        ("mixtral", "ffn.top_k=1"),
        ("mixtral", "ffn.experts=6"),
        ("gemma3_text", "ffn.width=104"),
    ],
)
def test_torch_counts_something_else_for_another_model(name: str, change: str) -> None:
    other = compile_text(BY_NAME[name].text(), overrides=[change]).architecture
    assert flops(other)["prefill_full_square"] != counted(BY_NAME[name])


@pytest.mark.parametrize("context", [1, 2, 3, 4, 16])
def test_per_token_is_the_mean_over_the_sequence(context: int) -> None:
    """Token by token: twice each weight, and four operations per key, head and channel."""
    total = 0
    for position in range(context):
        for layer in range(6):
            keys = min(position + 1, 3) if layer < 5 else position + 1
            total += 2 * (ATTENTION + FFN) + 4 * 3 * 4 * keys
        total += 2 * 20 * 10
    assert flops(compile_text(WINDOWED).architecture, context)["forward_per_token"] == round(total / context)


def test_a_window_saves_arithmetic() -> None:
    windowed = flops(compile_text(WINDOWED).architecture, 16)["forward_per_token"]
    full = flops(compile_text(PLAIN, overrides=["layers=6"]).architecture, 16)["forward_per_token"]
    assert full - windowed == round(5 * 4 * 3 * 4 * (17 / 2 - (1 + 2 + 14 * 3) / 16))


def test_experts_by_hand() -> None:
    """Attention, a router of 5 rows and two experts in each of two layers; 17 / 2 keys on average."""
    expected = 2 * (2 * ATTENTION + 2 * 5 * 10 + 2 * 2 * FFN + 4 * 3 * 4 * 17 / 2) + 2 * 20 * 10
    assert flops(compile_text(MIXTURE).architecture, 16)["forward_per_token"] == expected


def test_the_usual_estimate() -> None:
    """2N + 4·layers·heads·head_dim·keys per token (Chowdhery et al. 2022, appendix B), N without the embedding.

    N includes the norms, which are not matrix products: 266,240 of 7.5e9.
    """
    found = flops(compile_spec("llama3-8b").architecture, 8192)
    multiplied = 8_030_261_248 - 128_256 * 4096 - 266_240
    assert found["prefill_full_square"] == 8192 * (2 * multiplied + 4 * 32 * 32 * 128 * 8192)
    assert found["forward_per_token"] == 2 * multiplied + 4 * 32 * 32 * 128 * 8193 // 2


def test_a_tied_head_multiplies_all_the_same() -> None:
    tied = compile_text(PLAIN, overrides=["embedding.tied=true"]).architecture
    assert flops(tied) == flops(compile_text(PLAIN).architecture)


def test_mean_keys_of_very_long_contexts() -> None:
    assert MeanKeys(10**12)() == Fraction(10**12 + 1, 2)
    assert MeanKeys(10**12)(window=4096) == pytest.approx(4096, rel=1e-8)


@pytest.mark.parametrize("reach", [1, 2, 3, 5, 7, 11, 12, 50])
def test_keys_are_counted_token_by_token(reach: int) -> None:
    """A token at position p of 11, counted from 0, sees its window's keys, or those since its chunk began."""
    context = 11
    windowed = [min(position + 1, reach) for position in range(context)]
    chunked = [position % reach + 1 for position in range(context)]
    assert MeanKeys(context)(window=reach) == Fraction(sum(windowed), context)
    assert MeanKeys(context)(chunk=reach) == Fraction(sum(chunked), context)
    assert LastKeys(context)(window=reach) == windowed[-1]
    assert AllKeys(context)(window=reach) == AllKeys(context)(chunk=reach) == context


def test_conventions_are_said() -> None:
    lines = flops(compile_text(PLAIN).architecture)["conventions"]
    assert any("head is counted" in line for line in lines)
    assert not any("router" in line for line in lines)
    assert any("router" in line for line in flops(compile_text(MIXTURE).architecture)["conventions"])
