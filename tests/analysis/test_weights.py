"""Weights in memory: bytes per format, counted by hand."""

import pytest

from archc.analysis import build_report
from archc.analysis.report import Report
from archc.architecture import compile_spec, compile_text
from tests.analysis.specs import PLAIN

# Two layers of width 256, 2 heads of 64 over one, feed-forward of width 300; 7 experts where there are any.
WIDE = PLAIN.replace("hidden_size: 10", "hidden_size: 256").replace(
    "{heads: 3, kv_heads: 1, head_dim: 4}", "{heads: 2, kv_heads: 1, head_dim: 64}"
)
WIDE = WIDE.replace("width: 6", "width: 300")
EXPERTS = WIDE.replace(
    "{kind: gated, activation: silu, width: 300}",
    "{kind: moe, experts: 7, top_k: 2, width: 300, activation: silu, bias: experts, "
    "router: {score: softmax, renormalize: true}}",
)
HEADS = 256 * (128 + 64 + 64) + 128 * 256  # q, k, v, o
FFN = 3 * 256 * 300
SCALES = 2 * (128 + 64 + 64) + 256 + 2 * 2 * 300 + 3 * 256  # one for 128 inputs: 2 for 256, 1 for 128, 3 for 300


def report(text: str) -> Report:
    return build_report(compile_text(text).architecture)


def test_matrices_of_the_layers_shrink_and_nothing_else() -> None:
    found = report(WIDE)
    total, matrices = found["params"]["total"], 2 * (HEADS + FFN)
    assert total - matrices == 2 * 20 * 256 + 5 * 256  # both ends and the norms
    assert found["weights"]["formats"] == {
        "bfloat16": 2 * total,
        "float8": 2 * (total - matrices) + matrices,
        "int4_g128": 2 * (total - matrices) + matrices // 2 + 2 * 2 * SCALES,
    }


def test_experts_shrink_and_their_biases_and_routers_do_not() -> None:
    found = report(EXPERTS)
    total, matrices = found["params"]["total"], 2 * (HEADS + 7 * FFN)
    formats = found["weights"]["formats"]
    assert formats["float8"] == 2 * (total - matrices) + matrices
    per_expert = SCALES - (2 * (128 + 64 + 64) + 256)
    scales = 2 * (SCALES - per_expert + 7 * per_expert)
    assert formats["int4_g128"] == 2 * (total - matrices) + matrices // 2 + 2 * scales


def test_rows_shorter_than_a_group_stay() -> None:
    weights = report(PLAIN)["weights"]
    assert set(weights["formats"].values()) == {weights["bytes"]}


def test_a_model_that_people_serve() -> None:
    """Llama 3 8B: 32 × 218,103,808 numbers in matrices of layers, whose rows hold 4,096 or 14,336 inputs."""
    formats = build_report(compile_spec("llama3-8b").architecture)["weights"]["formats"]
    matrices = 32 * 218_103_808
    assert formats["float8"] == 2 * 8_030_261_248 - matrices
    assert formats["int4_g128"] == 2 * (8_030_261_248 - matrices) + matrices // 2 + 2 * matrices // 128


@pytest.mark.parametrize("word", ["scale", "bfloat16", "fewer than 128"])
def test_conventions_are_said(word: str) -> None:
    assert any(word in line for line in report(PLAIN)["weights"]["conventions"])
