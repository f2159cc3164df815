"""`archc compare`."""

import re
import time
from pathlib import Path

import pytest

from archc.analysis import build_report
from archc.architecture import compile_spec
from archc.spec.load import shipped_names
from tests.analysis.specs import HYBRID, RECURRENT
from tests.cli.runner import archc


def table(*arguments: str) -> dict[str, list[str]]:
    done = archc("compare", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return {row["label"]: row["values"] for row in done.json["rows"]}


def test_the_usual_three() -> None:
    """As published side by side for GPT-2 124M, Qwen3-0.6B and Llama 3 8B."""
    rows = table("gpt2", "qwen3-0.6b", "llama3-8b")
    assert rows["layers, width"] == ["12, 768", "28, 1,024", "32, 4,096"]
    assert rows["heads/KV, size"] == ["12/12, 64", "16/8, 128", "32/8, 128"]
    assert rows["feed-forward"] == ["GELU 3,072", "SwiGLU 3,072", "SwiGLU 14,336"]
    assert rows["norm"] == ["LayerNorm", "RMSNorm", "RMSNorm"]
    assert rows["positions"] == ["table of 1,024", "RoPE base 1,000,000", "RoPE base 500,000"]
    assert rows["vocabulary, tied"] == ["50,257, yes", "151,936, yes", "128,256, no"]
    assert rows["cache per token"] == ["73.73 kB = 72 KiB", "114.7 kB = 112 KiB", "131.1 kB = 128 KiB"]
    assert not {"active", "in windows", "fixed states", "mixers"} & set(rows)


def test_rows_appear_where_they_say_something(tmp_path: Path) -> None:
    spec = tmp_path / "hybrid.yaml"
    spec.write_text(HYBRID)
    rows = table("mixtral-8x7b", "mistral-7b", str(spec))
    assert rows["active"] == ["12.88 B", "", ""]
    assert rows["in windows"] == ["", "131.1 kB = 128 KiB", ""]
    assert rows["fixed states"][2] == "320 B"
    assert rows["mixers"] == ["", "", "2 mamba2, 1 gqa"]
    assert rows["feed-forward"][0] == "2 of 8 SwiGLU 14,336"


def test_without_attention(tmp_path: Path) -> None:
    spec = tmp_path / "recurrent.yaml"
    spec.write_text(RECURRENT)
    rows = table("gpt2", str(spec))
    assert rows["heads/KV, size"][1] == rows["positions"][1] == "none"


def test_json_holds_the_reports() -> None:
    done = archc("compare", "gpt2", "llama3-8b", "--context", "512", "--batch", "3", "--json").json
    assert [one["name"] for one in done["reports"]] == ["gpt2", "llama3-8b"]
    assert done["reports"][1] == build_report(compile_spec("llama3-8b").architecture, context=512, batch=3)


def test_options_reach_every_model() -> None:
    rows = table("gpt2", "llama3-8b", "--context", "1024", "--kv-dtype", "float8", "--dtype", "bfloat16")
    assert rows["cache at context"] == ["18.87 MB = 18 MiB", "67.11 MB = 64 MiB"]
    assert all("bfloat16" in cell for cell in rows["weights"])


def test_contexts_of_their_own_are_named() -> None:
    assert table("gpt2", "llama3-8b")["cache at context"][1] == "1.074 GB = 1 GiB at 8,192"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_80_columns(count: int) -> None:
    names = ["gpt2", "qwen3-235b-a22b", "llama3.1-405b", "mistral-7b", "gemma3-270m", "ladder/rope", "mixtral-8x7b"]
    done = archc("compare", *names[:count])
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert len(re.findall(r"^layers, width", done.out, re.MULTILINE)) == -(-count // 3)
    assert all(name in done.out for name in names[:count])


def test_a_number_stays_with_its_unit() -> None:
    for line in archc("compare", "gpt2", "qwen3-0.6b", "llama3-8b").out.splitlines():
        assert not re.match(r" +[kMG]?i?B\b", line)


def test_a_context_that_one_of_them_does_not_have() -> None:
    done = archc("compare", "llama3-8b", "gpt2", "--context", "8192")
    assert (done.code, done.out) == (2, "")
    assert "gpt2 has a learned table of 1,024 positions" in done.err


def test_nothing_to_compare() -> None:
    assert archc("compare").code == 2


def test_sixty_are_as_fast_as_one() -> None:
    """Within one second of CPU time; the first call pays for imports."""
    names = (shipped_names() * 4)[:60]
    archc("compare", *names[:20], "--json")
    began = time.process_time()
    archc("compare", "llama3-8b")
    one = time.process_time()
    archc("compare", *names)
    assert time.process_time() - one < one - began + 1
