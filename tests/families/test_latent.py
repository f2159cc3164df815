"""Latent, sparse and compressed attention and several streams: figures by hand and from torch's own counter."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from archc.analysis import build_report
from archc.analysis.flops import MeanKeys
from archc.architecture import compile_spec, compile_text
from archc.architecture.model import Architecture
from archc.importing.convert import convert
from archc.parts.caches import CompressedCache, SharedSlidingCache
from archc.parts.latent import LatentAttention
from archc.spec.diagnostics import SpecError
from tests.families.zoo import CASES
from tests.families.zoo_case import Case

TOKENS = 40
LATENT = (
    *(
        "axk1",
        "axk2",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v3-direct",
        "deepseek_v32",
        "deepseek_v4",
        "dots3_note_text",
        "glm4_moe_lite",
    ),
    *("glm_moe_dsa", "hy_v4", "minicpm3", "minimax_m3_vl_text", "sarvam_mla", "youtu"),
)
"""longcat_flash is not among them: its experts need real numbers, and the counter runs without."""
HEADER = """
archc: 1
name: tiny
vocab_size: 100
hidden_size: 32
context: 64
dtype: bfloat16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-6}
position: {kind: rope, base: 10000}
ffn: {kind: gated, activation: silu, width: 48}
layers: 1
"""
MLA = "attention: {kind: mla, heads: 3, q_rank: 20, kv_rank: 12, nope_dim: 10, rope_dim: 4, value_dim: 6%s}\n"
INDEXER = ", indexer: {top_k: 5, heads: 2, head_dim: 8, key_norm: {kind: layernorm, bias: true}%s}"


def built(text: str) -> Architecture:
    return compile_text(HEADER + text).architecture


def attention(architecture: Architecture) -> LatentAttention:
    part = architecture.layers[0].mixer
    assert isinstance(part, LatentAttention)
    return part


def counted(case: Case) -> int:
    """Operations that torch counts in a forward pass with an explicit mask and math attention, without numbers."""
    config = AutoConfig.for_model(**case.config_dict())
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        model.set_experts_implementation("batched_mm")
        ids, mask = torch.zeros(1, TOKENS, dtype=torch.long), torch.zeros(1, 1, TOKENS, TOKENS)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(ids, attention_mask=mask, use_cache=False)
    total: int = counter.get_total_flops()
    return total


@pytest.mark.parametrize("case", [c for c in CASES if c.name in LATENT], ids=lambda case: case.name)
def test_a_full_square_is_what_torch_counts(case: Case) -> None:
    report = build_report(compile_text(convert(case.config_dict(), case.name).text).architecture, context=TOKENS)
    assert report["flops"]["prefill_full_square"] == counted(case)


def test_torch_counts_something_else_for_another_width() -> None:
    case = next(c for c in CASES if c.name == "deepseek_v3")
    other = convert({**case.config_dict(), "v_head_dim": 23}, case.name).text
    report = build_report(compile_text(other).architecture, context=TOKENS)
    assert report["flops"]["prefill_full_square"] != counted(case)


def test_deepseek_v3_by_hand() -> None:
    architecture = compile_spec("deepseek-v3").architecture
    part = attention(architecture)
    # q: 7168 to 1536 to 128 heads of 192; kv: 7168 to 512 + 64, 512 to 128 heads of 128 + 128; o: 16384 to 7168.
    matrices = 7168 * 1536 + 1536 * 24576 + 7168 * 576 + 512 * 32768 + 16384 * 7168
    assert sum(tensor.size for tensor in part.tensors()) == matrices + 1536 + 512
    assert part.scale == pytest.approx(192**-0.5 * (0.1 * math.log(40) + 1) ** 2)
    report = build_report(architecture, context=1000)
    assert report["params"]["total"] == 671_026_404_352
    assert report["kv_cache"]["bytes_per_token"] == 61 * (512 + 64) * 2 == 70_272


def test_decoding_meets_latents_and_a_pass_meets_keys() -> None:
    part = attention(built(MLA % ""))
    linear = 32 * 20 + 20 * 3 * 14 + 32 * 16 + 12 * 3 * 16 + 18 * 32
    rest = 2 * (3 * 32 * 48 + 100 * 32)
    flops = build_report(built(MLA % ""), context=8)["flops"]
    assert part.linear_flops() == 2 * linear
    # Eight keys each: 3 heads × (14 + 6) in a pass, 3 × (12 + 4 + 12) on latents.
    assert flops["prefill_full_square"] == 8 * (2 * linear + rest + 2 * 3 * 20 * 8)
    assert flops["decode_per_token"] == 2 * linear + rest + 2 * 3 * 28 * 8
    assert flops["forward_per_token"] == 2 * linear + rest + 2 * 3 * 20 * 4.5


def test_an_indexer_costs_a_key_and_saves_pairs() -> None:
    plain, sparse = built(MLA % ""), built(MLA % INDEXER % "")
    more = [t.size for t in attention(sparse).tensors() if t.name.startswith("indexer.")]
    assert sum(more) == 20 * 2 * 8 + 32 * 8 + 2 * 8 + 32 * 2
    cache = build_report(sparse, context=8)["kv_cache"]
    assert cache["elements_per_token"] == 12 + 4 + 8
    indexed, full = (build_report(a, context=8)["flops"]["decode_per_token"] for a in (sparse, plain))
    # Five of eight keys are met; the index scores all eight, and sums two heads.
    assert indexed - full == 2 * (20 * 16 + 32 * 8 + 32 * 2) + 2 * 2 * 9 * 8 - 2 * 3 * 28 * 3


def test_reused_indices_cost_nothing() -> None:
    reused = built(MLA % INDEXER % ", indices: reused")
    assert attention(reused).tensors() == attention(built(MLA % "")).tensors()
    assert build_report(reused, context=8)["kv_cache"]["elements_per_token"] == 16


def test_compressed_cache_by_hand() -> None:
    # 40 positions in stretches of 3: 13 entries, one position waits, and the last stretch waits for the next entry.
    overlapping = CompressedCache(28, 3, overlapping=True)
    assert overlapping.held(40) == 13 * 28 + 2 * 2 * 28 + 2 * 3 * 28
    assert overlapping.held(2) == 2 * 2 * 2 * 28
    plain = CompressedCache(28, 7, overlapping=False)
    assert plain.held(40) == 5 * 28 + 2 * 5 * 28
    assert plain.growth == Fraction(28, 7)
    assert SharedSlidingCache(28, 9).held(40) == 9 * 28
    assert SharedSlidingCache(28, 9).reference_held(40) == 2 * 8 * 28


@pytest.mark.parametrize("context", [1, 6, 7, 20])
@pytest.mark.parametrize("rate", [1, 3, 7])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_entries_met_on_average(context: int, rate: int, most: int | None) -> None:
    each = [min(n // rate, context if most is None else most) for n in range(1, context + 1)]
    assert MeanKeys(context).entries(rate, most) == Fraction(sum(each), context)


def test_streams_by_hand() -> None:
    # Three streams of 32: at each of two branches 3 weights to read, 3 to write, 9 to mix; at the end 3 to read.
    plain = build_report(built(MLA % ""), context=8)
    mixed = built(MLA % "" + "streams: {kind: hyper_connections, count: 3, mixing: sinkhorn, eps: 1.0e-6}\n")
    apart = built(MLA % "" + "streams: {kind: hyper_connections, count: 3, mixing: none, eps: 1.0e-6}\n")
    end = 3 * 96 + 3 + 1
    more = [build_report(a, context=8)["params"]["other"] for a in (mixed, apart)]
    assert more == [2 * (15 * 96 + 15 + 3) + end, 2 * (6 * 96 + 6 + 2) + end]
    flops = build_report(mixed, context=8)["flops"]["decode_per_token"] - plain["flops"]["decode_per_token"]
    assert flops == 2 * 2 * (15 * 96 + 3 * 96) + 2 * 3 * 96


def test_a_gated_norm_by_hand() -> None:
    plain, gated = built(MLA % ""), built(MLA % "" + "block: [{attention: {}, norm: {gate_rank: 5}}, {ffn: {}}]\n")
    reports = [build_report(a, context=8) for a in (gated, plain)]
    assert reports[0]["params"]["norm"] - reports[1]["params"]["norm"] == 2 * 5 * 32
    assert reports[0]["flops"]["decode_per_token"] - reports[1]["flops"]["decode_per_token"] == 4 * 5 * 32


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (MLA % ", bias: [q]", "E211"),
        ((MLA % ", q_latent_scale: 2.0").replace("q_rank: 20, ", ""), "E211"),
        (MLA % "" + "block: [{attention: {}, reads: last_input}, {ffn: {}}]\n", "E103"),
    ],
)
def test_what_is_not_there_is_refused(text: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        built(text)
    assert [one.code for one in caught.value.diagnostics] == [code]
