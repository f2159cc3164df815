"""Mixtures of experts beyond the plain one: sizes counted by hand, and figures that Hugging Face's classes give."""

from __future__ import annotations

import pytest

from archc.analysis.flops import AllKeys
from archc.analysis.report import build_report
from archc.architecture import Architecture, compile_text
from archc.spec.diagnostics import SpecError

WIDTH, EXPERTS, EXPERT_WIDTH = 10, 6, 4
ROUTER = EXPERTS * WIDTH
ONE_EXPERT = 3 * EXPERT_WIDTH * WIDTH
SPEC = """\
archc: 1
name: mixture
vocab_size: 20
hidden_size: 10
context: 16
dtype: bfloat16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: none}
attention: null
ffn: {kind: moe, experts: 6, top_k: 2, width: 4, activation: silu, router: {score: softmax, renormalize: true}}
layers: 1
"""
ENDS = 20 * WIDTH + 2 * WIDTH
"""The tied table, the norm of the layer and the final one."""


def built(*changes: str) -> Architecture:
    return compile_text(SPEC, overrides=changes).architecture


def sizes(*changes: str) -> tuple[int, int, int]:
    """Parameters of the layer's experts and their router: all, those a token uses, and buffers beside them."""
    params = build_report(built(*changes), context=16)["params"]
    return params["total"] - ENDS, params["active"] - ENDS, params["stored_buffers"]


def linear_flops(*changes: str) -> int:
    (part,) = built(*changes).layers[0].parts()
    return part.linear_flops()


def test_plain() -> None:
    assert sizes() == (ROUTER + EXPERTS * ONE_EXPERT, ROUTER + 2 * ONE_EXPERT, 0)
    assert linear_flops() == 2 * (ROUTER + 2 * ONE_EXPERT)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ("ffn.router.bias=true", EXPERTS),
        ("ffn.router.correction=parameter", EXPERTS),
        ("ffn.router.norm=true", WIDTH),
        ("ffn.router.expert_scale=true", EXPERTS),
        ("ffn.router.learned_scale=true", 1),
        ("ffn.bias=sum", WIDTH),
        ("ffn.norms=each", 2 * WIDTH),
        ("ffn.shared={width: 5}", 3 * 5 * WIDTH),
        ("ffn.shared={width: 5, bias: true}", 3 * 5 * WIDTH + 5 + 5 + WIDTH),
        ("ffn.shared={width: 6, count: 3, gate: router}", 3 * 6 * WIDTH + 3 * WIDTH),
        ("ffn.identity={count: 3}", 3 * WIDTH),
        ("ffn.router.softcap=3.0", 0),
        ("ffn.router.groups={count: 3, chosen: 2, score: top2_sum}", 0),
    ],
)
def test_what_every_token_uses_counts_once(change: str, more: int) -> None:
    total, active, buffers = sizes(change)
    assert (total, active, buffers) == (
        ROUTER + EXPERTS * ONE_EXPERT + more,
        ROUTER + 2 * ONE_EXPERT + more,
        0,
    )


def test_a_correction_that_is_a_buffer_is_no_parameter() -> None:
    assert sizes("ffn.router.correction=buffer") == (*sizes()[:2], EXPERTS)


def test_a_table_of_experts_has_a_row_for_every_token() -> None:
    assert sizes("ffn.router.table=20") == (*sizes()[:2], 20 * 2)


def test_biases_of_experts_belong_to_the_experts() -> None:
    one = ONE_EXPERT + 2 * EXPERT_WIDTH + WIDTH
    assert sizes("ffn.bias=experts") == (ROUTER + EXPERTS * one, ROUTER + 2 * one, 0)
    assert linear_flops("ffn.bias=experts") == linear_flops()


def test_latent_experts_are_narrow_inside() -> None:
    one, around = 3 * EXPERT_WIDTH * 5, 2 * 5 * WIDTH
    assert sizes("ffn.latent={width: 5}") == (ROUTER + EXPERTS * one + around, ROUTER + 2 * one + around, 0)
    assert linear_flops("ffn.latent={width: 5}") == 2 * (ROUTER + 2 * one + around)
    with_bias = sizes("ffn.latent={width: 5, bias: true}")
    assert with_bias[0] == sizes("ffn.latent={width: 5}")[0] + 5 + WIDTH


def test_identity_experts_may_have_slices_that_nothing_uses() -> None:
    change = "ffn.identity={count: 3, stored: inputs}"
    assert sizes(change)[0] == sizes("ffn.identity={count: 3}")[0] + 3 * 2 * EXPERT_WIDTH * WIDTH
    assert sizes(change)[1] == sizes("ffn.identity={count: 3}")[1]


def test_norms_of_a_shared_feed_forward_are_its_own() -> None:
    apart, shared = sizes("ffn.norms=each", "ffn.shared={width: 5}"), sizes("ffn.shared={width: 5}")
    assert apart[0] == shared[0] + 4 * WIDTH


def problems(*changes: str) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as refused:
        built(*changes)
    return [(found.code, found.message) for found in refused.value.diagnostics]


def test_more_experts_than_there_are() -> None:
    built("ffn.top_k=8", "ffn.identity={count: 2}")
    assert problems("ffn.top_k=8") == [("E204", "top_k 8 is more than the 6 experts there are")]


def test_groups_are_equal() -> None:
    built("ffn.router.groups={count: 3, chosen: 2, score: max}")
    assert problems("ffn.router.groups={count: 4, chosen: 2, score: max}") == [
        ("E204", "6 experts cannot stand in 4 equal groups")
    ]


def test_chosen_groups_hold_enough() -> None:
    built("ffn.top_k=4", "ffn.router.groups={count: 3, chosen: 2, score: max}")
    assert problems("ffn.top_k=5", "ffn.router.groups={count: 3, chosen: 2, score: max}") == [
        ("E204", "top_k 5 experts cannot come from 2 of 3 groups of 2")
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("ffn.glu={sparsity: 0.9}", "ffn.glu.sparsity"),
        ("ffn.shared={width: 5, glu: {sparsity: 0.9}}", "ffn.shared.glu.sparsity"),
    ],
)
def test_what_changes_no_size_is_still_named(change: str, named: str) -> None:
    (part,) = built(change).layers[0].parts()
    assert part.ungenerated() == (named,)
    assert sizes(change)[2] == 0


def test_what_templates_print_is_not_named() -> None:
    changes = ("ffn.router.score=sigmoid", "ffn.router.scale=2.5", "ffn.shared={width: 5, gate: sigmoid}")
    (part,) = built(*changes).layers[0].parts()
    assert part.ungenerated() == ()


GPT_OSS_20B = """\
archc: 1
name: gpt-oss-20b
vocab_size: 201088
hidden_size: 2880
context: 131072
dtype: bfloat16
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: rope, base: 150000}
attention: {heads: 64, kv_heads: 8, head_dim: 64, bias: all, sinks: column}
ffn:
  kind: moe
  experts: 32
  top_k: 4
  width: 2880
  activation: silu
  bias: experts
  router: {score: softmax, order: top_k_then_score, renormalize: false, bias: true}
layers: 24
"""


def test_gpt_oss_20b_has_as_many_parameters_as_published() -> None:
    params = build_report(compile_text(GPT_OSS_20B).architecture, context=16)["params"]
    assert (params["total"], params["active"]) == (20_914_757_184, 4_187_440_704)


ROUTED_ATTENTION = """\
archc: 1
name: experts for queries
vocab_size: 211
hidden_size: 60
context: 173
dtype: float32
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-6}
position: {kind: rope, base: 10000}
attention:
  kind: routed
  experts: 7
  top_k: 3
  kv_heads: 2
  head_dim: 14
  bias: true
  router: {score: softmax, renormalize: false}
ffn: {kind: gated, activation: silu, width: 1}
layers: 1
"""


def test_experts_for_queries_and_outputs() -> None:
    """As in transformers' JetMoe: q and o per expert, one k and v, one output bias, a router."""
    architecture = compile_text(ROUTED_ATTENTION).architecture
    report = build_report(architecture, context=40)
    assert report["params"]["attention"] == 7 * 2 * 28 * 60 + 2 * 28 * 60 + 60
    assert report["params"]["router"] == 7 * 60
    assert report["params"]["total"] - report["params"]["active"] == (7 - 3) * 2 * 28 * 60
    assert report["kv_cache"]["reference_elements_at_context"] == 40 * 2 * 28
    part = next(architecture.layers[0].parts())
    assert part.linear_flops() == 2 * (7 * 60 + 3 * 2 * 28 * 60 + 2 * 28 * 60)
    assert part.mixing_flops(AllKeys(5)) == 5 * 2 * 2 * (3 * 28)


def test_routed_attention_checks_its_numbers() -> None:
    with pytest.raises(SpecError, match="E204"):
        compile_text(ROUTED_ATTENTION, overrides=["attention.top_k=8"])
    with pytest.raises(SpecError, match="E202"):
        compile_text(ROUTED_ATTENTION, overrides=["attention.head_dim=13"])
