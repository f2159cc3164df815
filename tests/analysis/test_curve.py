"""Curves of the cache: each of their points is what a report for that context says."""

import pytest

from archc.analysis import build_report
from archc.analysis.curve import CacheCurve, cache_curves
from archc.architecture import compile_spec


def curves(*specs: str, **sizes: int) -> list[CacheCurve]:
    architectures = [compile_spec(spec).architecture for spec in specs]
    return cache_curves([(one, build_report(one, **sizes)) for one in architectures])  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["gpt2", "gemma3-27b", "qwen3-next-80b", "deepseek-v3"])
def test_every_point_is_what_a_report_says(spec: str) -> None:
    (curve,) = curves(spec, batch=3)
    architecture = compile_spec(spec).architecture
    for context, size in curve.points[:: len(curve.points) // 7]:
        assert size == build_report(architecture, context=context, batch=3)["kv_cache"]["bytes_at_context"]
    assert curve.own in curve.points


def test_a_window_bends_the_curve() -> None:
    """Mistral 7B v0.1: 2 × 8 heads × 128 × 32 layers in bfloat16 are 131,072 bytes a token, for 4,096 tokens."""
    (curve,) = curves("mistral-7b")
    sizes = dict(curve.points)
    assert sizes[2048] * 2 == sizes[4096] == sizes[8192] == 131_072 * 4096


def test_a_fixed_state_is_where_a_curve_begins() -> None:
    """The 36 recurrent layers of Qwen3-Next 80B weigh more than a short context's rows."""
    (curve,) = curves("qwen3-next-80b")
    assert curve.points[0].bytes > 0.9 * curve.points[4].bytes


def test_a_learned_table_ends_the_curve() -> None:
    gpt2, llama = curves("gpt2", "llama3-8b")
    assert gpt2.points[-1].context == gpt2.wall == 1024
    assert (llama.points[-1].context, llama.wall) == (8192, None)
    assert gpt2.points[0].context == llama.points[0].context


def test_an_own_context_is_a_point() -> None:
    (curve,) = curves("llama3-8b", context=3000)
    assert curve.own == (3000, 131_072 * 3000)
    assert curve.own in curve.points
    assert curve.points[-1].context == 4096


def test_the_shortest_context() -> None:
    (curve,) = curves("llama3-8b", context=1)
    assert [point.context for point in curve.points] == [1, 2]
