"""Sizes of shipped specs that others have published to the digit, and a change that each must notice."""

from collections.abc import Callable

import pytest

from archc.analysis import Report, build_report
from archc.architecture import compile_spec

MIB, GIB = 2**20, 2**30

# (spec, context, figure, its value, an override that gives another one)
POINTS: list[tuple[str, int | None, Callable[[Report], float], float, str]] = [
    ("deepseek-v3", None, lambda r: r["kv_cache"]["bytes_per_token"], 70_272, "attention.rope_dim=32"),
    ("deepseek-v3", None, lambda r: round(r["params"]["active"] / 1e9, 2), 37.55, "ffn.top_k=9"),
    ("gemma3-1b", 32768, lambda r: round(r["kv_cache"]["bytes_at_context"] / MIB, 1), 139.0, "attention.window=1024"),
    ("qwen3-next-80b", 32768, lambda r: round(r["kv_cache"]["bytes_at_context"] / MIB, 1), 805.7, "mixer.kernel=8"),
    ("qwen3-next-80b", 32768, lambda r: r["kv_cache"]["fixed_state_bytes"], 39_518_208, "mixer.key_dim=64"),
    ("gpt-oss-20b", None, lambda r: r["params"]["total"], 20_914_757_184, "attention.sinks=none"),
    ("gpt-oss-20b", None, lambda r: r["params"]["active"], 4_187_440_704, "ffn.top_k=3"),
    ("qwen3-0.6b", 32768, lambda r: r["kv_cache"]["bytes_at_context"] / GIB, 3.5, "attention.head_dim=64"),
]


@pytest.mark.parametrize(("name", "context", "figure", "value", "change"), POINTS)
def test_spec_has_the_published_figure(
    name: str, context: int | None, figure: Callable[[Report], float], value: float, change: str
) -> None:
    assert figure(build_report(compile_spec(name).architecture, context=context)) == value
    assert figure(build_report(compile_spec(name, [change]).architecture, context=context)) != value
