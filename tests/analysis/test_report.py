"""The report as a whole: its stable keys, its options and its limits."""

import re
from pathlib import Path

import pytest

from archc.analysis import build_report
from archc.architecture import compile_spec, compile_text
from archc.errors import UsageError
from tests.analysis.specs import ATTENTION, CONV, FFN, HYBRID, MIXTURE, NORMS, PLAIN, RECURRENT, STATE, WINDOWED

# What scripts may rely on: key by key, in this order.
KEYS = {
    "name": None,
    "family": None,
    "layers": None,
    "hidden_size": None,
    "vocab_size": None,
    "context": None,
    "dtype": None,
    "tied": None,
    "norms": None,
    "positions": None,
    "params": "total active total_without_embeddings active_without_embeddings embedding head attention ffn "
    "router norm position other stored_buffers",
    "block": "ffn_share attention_share",
    "mixers": "gqa",
    "attention": "heads kv_heads head_dim group_size",
    "ffn": "kind width gated activation",
    "moe": "experts top_k expert_params params_per_expert expert_share",
    "kv_cache": "dtype state_dtype elements_per_token bytes_per_token window_bytes_per_token fixed_state_bytes "
    "bytes_at_context context batch reference_elements_at_context bytes_at_context_reserved by_kind",
    "weights": "dtype bytes formats conventions",
    "flops": "forward_per_token decode_per_token prefill_full_square context conventions",
    "rope": "pairs base pairing fastest_period slowest_period attention_factor scaling",
    "limits": "hard_context trained_context",
}


def test_stable_keys() -> None:
    report = build_report(compile_text(MIXTURE).architecture)
    assert list(report) == list(KEYS)
    for key, inner in KEYS.items():
        if inner is not None:
            assert list(report[key]) == inner.split()  # type: ignore[literal-required]


def test_sections_that_may_be_absent() -> None:
    learned = PLAIN.replace("{kind: rope, base: 10000}", "{kind: learned}")
    assert list(build_report(compile_text(learned).architecture)) == [key for key in KEYS if key not in {"moe", "rope"}]


def test_what_a_spec_cannot_say_is_listed() -> None:
    odd = PLAIN + "undeclared: [it dreams]\n"
    assert build_report(compile_text(odd).architecture)["undeclared"] == ["it dreams"]
    assert "undeclared" not in build_report(compile_text(PLAIN).architecture)


def test_header() -> None:
    report = build_report(compile_spec("qwen3-0.6b").architecture)
    shown = {key: report[key] for key in list(KEYS)[:7]}  # type: ignore[literal-required]
    assert shown == {
        "name": "qwen3-0.6b",
        "family": "qwen3",
        "layers": 28,
        "hidden_size": 1024,
        "vocab_size": 151_936,
        "context": 40_960,
        "dtype": "bfloat16",
    }
    assert report["attention"] == {"heads": 16, "kv_heads": 8, "head_dim": 128, "group_size": 2}
    assert report["ffn"] == {"kind": "gated", "width": 3072, "gated": True, "activation": "silu"}
    assert (report["tied"], report["norms"], report["positions"]) == (True, ["rmsnorm"], ["rope"])


def test_weights_in_other_types() -> None:
    architecture = compile_spec("llama3-8b").architecture
    weights = build_report(architecture)["weights"]
    assert (weights["dtype"], weights["bytes"]) == ("bfloat16", 2 * 8_030_261_248)
    assert build_report(architecture, dtype="float32")["weights"]["bytes"] == 4 * 8_030_261_248
    assert build_report(architecture, dtype="int4")["weights"]["bytes"] == 8_030_261_248 // 2


def test_half_a_byte_is_rounded_up() -> None:
    odd = compile_text(PLAIN, overrides=["embedding.tied=true", "hidden_size=9"]).architecture
    report = build_report(odd, dtype="int4")
    assert report["params"]["total"] % 2 == 1
    assert report["weights"]["bytes"] == report["params"]["total"] // 2 + 1


def test_a_learned_table_is_a_wall() -> None:
    architecture = compile_spec("gpt2").architecture
    assert build_report(architecture, context=1024)["limits"] == {"hard_context": 1024, "trained_context": 1024}
    with pytest.raises(UsageError, match="table of 1,024 positions"):
        build_report(architecture, context=1025)


def test_rope_has_no_wall() -> None:
    report = build_report(compile_spec("llama3.1-8b").architecture, context=2**20)
    assert report["limits"] == {"hard_context": None, "trained_context": 8192}  # original_context of its scaling
    assert report["context"] == 131_072
    assert report["kv_cache"]["context"] == 2**20


def test_the_shortest_stretch_limits_what_was_trained() -> None:
    scaling = "scaling: {kind: yarn, factor: 8, original_context:"
    text = WINDOWED.replace("base: 100}", f"base: 100, {scaling} 4}}}}").replace("10000}", f"10000, {scaling} 6}}}}")
    assert build_report(compile_text(text).architecture)["limits"]["trained_context"] == 4


def test_the_most_common_kind_speaks_for_the_model() -> None:
    mixed = WINDOWED.replace("global: null", "global: {attention: {heads: 2, head_dim: 6}, ffn: {width: 8}}")
    report = build_report(compile_text(mixed).architecture)
    assert report["attention"]["heads"] == 3
    assert report["layer_kinds"] == {"local": 5, "global": 1}
    turned = build_report(compile_text(mixed.replace("5*local, global", "2*local, 4*global")).architecture)
    assert turned["attention"]["heads"] == 2
    assert turned["ffn"]["width"] == 8


def test_a_uniform_stack_has_no_kinds() -> None:
    assert "layer_kinds" not in build_report(compile_text(PLAIN).architecture)


def test_every_layer_is_listed_when_asked() -> None:
    architecture = compile_text(WINDOWED).architecture
    assert "layer_table" not in build_report(architecture)
    table = build_report(architecture, layers=True)["layer_table"]
    assert [row["kind"] for row in table] == ["local"] * 5 + ["global"]
    assert [row["window"] for row in table] == [3] * 5 + [None]
    assert [row["rope_base"] for row in table] == [100] * 5 + [10_000]
    assert [row["index"] for row in table] == list(range(6))
    assert {row["params"] for row in table} == {ATTENTION + FFN + NORMS}
    assert {row["kv_elements_per_position"] for row in table} == {8}


def test_active_parameters_of_a_layer() -> None:
    row = build_report(compile_text(MIXTURE).architecture, layers=True)["layer_table"][0]
    assert row["params"] - row["active"] == 3 * FFN


def test_layers_without_attention() -> None:
    report = build_report(compile_text(HYBRID).architecture, layers=True)
    assert report["mixers"] == {"mamba2": 2, "gqa": 1}
    assert report["attention"]["heads"] == 3  # of the one layer that has any
    first, _, last = report["layer_table"]
    assert (first["mixer"], first["attention"], first["state_elements"]) == ("mamba2", None, CONV + STATE)
    assert first["kv_elements_per_position"] == 0
    assert (last["mixer"], last["state_elements"], last["kv_elements_per_position"]) == ("gqa", 0, 8)


def test_a_model_without_attention() -> None:
    report = build_report(compile_text(RECURRENT).architecture)
    assert "attention" not in report
    assert "rope" not in report
    assert report["positions"] == []


def test_what_tells_positions_apart() -> None:
    learned = PLAIN.replace("{kind: rope, base: 10000}", "{kind: learned}")
    slopes = PLAIN.replace("{kind: rope, base: 10000}", "{kind: alibi}")
    assert build_report(compile_text(learned).architecture)["positions"] == ["learned"]
    assert build_report(compile_text(slopes).architecture)["positions"] == ["alibi"]
    assert build_report(compile_text(WINDOWED).architecture)["positions"] == ["rope"]


PAGE = (Path(__file__).parent.parent.parent / "docs" / "sizes.md").read_text()


def keys_of(value: object) -> set[str]:
    if not isinstance(value, dict):
        return set()
    inner = set().union(
        *(keys_of(one) for key, one in value.items() if key not in {"by_kind", "layer_kinds", "mixers"})
    )
    return {*value, *inner}


def test_every_key_is_documented() -> None:
    named = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", PAGE))))
    llama = build_report(compile_spec("llama3.1-8b").architecture, layers=True, fits=2**40)
    mixed = build_report(compile_text(MIXTURE).architecture)
    hybrid = build_report(compile_text(HYBRID).architecture)
    kinds = set().union(*(one["kv_cache"]["by_kind"]["full"] for one in (llama, hybrid)))
    keys = set().union(*(keys_of(one) for one in (llama, mixed, hybrid)), kinds)
    assert keys - named - {"conventions"} == set()
    assert "no_such_key" not in named
