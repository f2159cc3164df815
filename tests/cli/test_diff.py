"""`archc diff`."""

from pathlib import Path

import pytest

from tests.analysis.specs import PLAIN
from tests.cli.runner import archc


def test_for_readers() -> None:
    done = archc("diff", "llama3-8b", "llama3.1-8b")
    assert (done.code, done.err) == (0, "")
    assert "silent  context                  8,192 → 131,072\n        +16.11 GB at the context\n" in done.out
    assert "position.scaling" in done.out
    assert "0 loud" in done.out
    assert "2 silent" in done.out
    assert "source" in done.out


def test_json() -> None:
    found = archc("diff", "llama3-8b", "llama3.1-8b", "--json").json
    assert not found["equal"]
    assert found["a"]["params"] == found["b"]["params"] == 8_030_261_248
    assert [one["field"] for one in found["differences"]] == ["context", "position.scaling"]
    assert found["differences"][0] == {
        "field": "context",
        "layers": None,
        "a": 8192,
        "b": 131_072,
        "effect": {"params": 0, "cache_bytes_per_token": 0, "cache_bytes_at_context": 122_880 * 131_072},
        "failure": "silent",
    }


def test_equal_specs() -> None:
    done = archc("diff", "gpt2", "gpt2")
    assert done.code == 0
    assert "nothing that is computed differs" in done.out
    assert "besides" not in done.out


def test_only_the_name(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(PLAIN.replace("name: small", "name: large"))
    spec = tmp_path / "spec.yaml"
    spec.write_text(PLAIN)
    done = archc("diff", str(spec), str(other))
    assert "nothing that is computed differs" in done.out
    assert "small → large" in done.out


@pytest.mark.parametrize("pair", [("gpt2", "llama3-8b"), ("gemma3-270m", "mixtral-8x7b"), ("olmo2-7b", "mistral-7b")])
def test_80_columns(pair: tuple[str, str]) -> None:
    lines = archc("diff", *pair).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]


def test_layers_are_named_where_not_all_differ() -> None:
    out = archc("diff", "qwen3-0.6b", "gemma3-270m").out
    assert "layers 0-4, 6-10, 12-16" in out
    assert "layers 0-17" not in out


@pytest.mark.parametrize("arguments", [["gpt2"], [], ["gpt2", "nothing-of-the-kind"]])
def test_wrong_usage(arguments: list[str]) -> None:
    done = archc("diff", *arguments)
    assert (done.code, done.out) == (2, "")
