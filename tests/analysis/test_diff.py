"""Differences of specs: found once, sized alone, and told apart by whether weights would load."""

from typing import Any

import pytest

from archc.analysis.alignment import continued
from archc.analysis.diff import Diff, Difference, diff
from archc.architecture import compile_spec, compile_text
from archc.spec.language import Spec
from tests.analysis.specs import ATTENTION, FFN, HYBRID, MIXTURE, PLAIN, WINDOWED


def spec(target: str) -> Spec:
    name, *changes = target.split() if "\n" not in target else (target,)
    return (compile_text(name) if "\n" in name else compile_spec(name, changes)).loaded.spec


def compared(a: str, b: str) -> Diff:
    return diff(spec(a), spec(b))


def fields(found: Diff) -> dict[str, Difference]:
    return {one["field"]: one for one in found["differences"]}


def only(a: str, b: str) -> Difference:
    (one,) = compared(a, b)["differences"]
    return one


def test_the_same_spec() -> None:
    for text in (PLAIN, MIXTURE, WINDOWED, HYBRID):
        found = compared(text, text)
        assert found["equal"]
        assert found["differences"] == found["apart"] == []


# A change of PLAIN, its field, what it is in A and B; by hand: parameters and cache bytes a token; how it fails.
ONE_CHANGE: list[tuple[str, str, str, Any, Any, int, int, str]] = [
    ("base: 10000", "base: 500", "position.base", 10_000, 500, 0, 0, "silent"),
    ("eps: 1.0e-5", "eps: 1.0e-6", "norm.eps", 1e-5, 1e-6, 0, 0, "silent"),
    ("kind: rmsnorm", "kind: layernorm", "norm.kind", "rmsnorm", "layernorm", 0, 0, "silent"),
    ("activation: silu", "activation: relu", "ffn.activation", "silu", "relu", 0, 0, "silent"),
    ("head_dim: 4}", "head_dim: 4, grouping: tiled}", "attention.grouping", "interleaved", "tiled", 0, 0, "silent"),
    ("head_dim: 4}", "head_dim: 4, scale: 0.25}", "attention.scale", 0.5, 0.25, 0, 0, "silent"),
    ("head_dim: 4}", "head_dim: 4, window: 3}", "attention.window", None, 3, 0, -32, "silent"),
    ("kv_heads: 1", "kv_heads: 3", "attention.kv_heads", 1, 3, 2 * 2 * 2 * 40, 2 * 2 * 2 * 8, "loud"),
    ("head_dim: 4", "head_dim: 6", "attention.head_dim", 4, 6, 2 * 10 * 2 * (6 + 2), 2 * 2 * 4, "loud"),
    ("width: 6", "width: 7", "ffn.width", 6, 7, 2 * 3 * 10, 0, "loud"),
    ("tied: false", "tied: true", "embedding.tied", False, True, -200, 0, "loud"),
    ("vocab_size: 20", "vocab_size: 21", "vocab_size", 20, 21, 20, 0, "loud"),
    ("context: 16", "context: 32", "context", 16, 32, 0, 0, "silent"),
    ("layers: 2", "layers: 3", "layers", 2, 3, ATTENTION + FFN + 20, 16, "loud"),
    ("width: 6}", "width: 6, bias: true}", "ffn.bias", False, True, 2 * (6 + 6 + 10), 0, "loud"),
    ("layers: 2", "layers: 2\nfinal_norm: false", "final_norm", True, False, -10, 0, "loud"),
    ("layers: 2", "layers: 2\nresidual: {branch: 0.5}", "residual.branch", 1, 0.5, 0, 0, "silent"),
    ("layers: 2", "layers: 2\nlogits: {softcap: 30.0}", "logits.softcap", None, 30, 0, 0, "silent"),
]


@pytest.mark.parametrize(
    ("old", "new", "field", "a", "b", "params", "per_token", "failure"), ONE_CHANGE, ids=[c[2] for c in ONE_CHANGE]
)
def test_one_change(
    old: str, new: str, field: str, a: object, b: object, params: int, per_token: int, failure: str
) -> None:
    assert old in PLAIN
    found = only(PLAIN, PLAIN.replace(old, new))
    assert (found["field"], found["a"], found["b"], found["failure"]) == (field, a, b, failure)
    assert found["effect"] is not None
    assert found["effect"]["params"] == params
    assert found["effect"]["cache_bytes_per_token"] == per_token
    back = only(PLAIN.replace(old, new), PLAIN)
    assert (back["a"], back["b"], back["failure"]) == (b, a, failure)


def test_what_is_stated_as_it_would_be_anyway_is_no_difference() -> None:
    for old, new in (
        ("head_dim: 4}", "head_dim: 4, scale: 0.5, bias: none, grouping: interleaved}"),
        ("base: 10000}", "base: 10000, pairing: half, partial: 1.0}"),
        ("layers: 2", "layers: {count: 2, kinds: {one: null, other: null}, pattern: 'one, other'}"),
        ("kv_heads: 1, head_dim: 4}", "kv_heads: 1, head_dim: 4, qk_norm: null}"),
    ):
        assert old in PLAIN
        assert compared(PLAIN, PLAIN.replace(old, new))["equal"]
        assert compared(PLAIN.replace(old, new), PLAIN)["equal"]


def test_the_cache_at_the_context() -> None:
    found = only(PLAIN, PLAIN.replace("context: 16", "context: 32"))["effect"]
    assert found == {"params": 0, "cache_bytes_per_token": 0, "cache_bytes_at_context": 32 * 16}
    windowed = only(PLAIN, PLAIN.replace("head_dim: 4}", "head_dim: 4, window: 3}"))["effect"]
    assert windowed is not None
    assert windowed["cache_bytes_at_context"] == 32 * (3 - 16)


def test_heads_alone_may_go_unnoticed() -> None:
    """2 heads of 6 or 3 of 4: the shapes are the same, the model is not. With heads stated wide, they are not."""
    two = PLAIN.replace("hidden_size: 10", "hidden_size: 12").replace(
        "{heads: 3, kv_heads: 1, head_dim: 4}", "{heads: 2}"
    )
    found = only(two, two.replace("heads: 2", "heads: 3"))
    assert (found["field"], found["failure"]) == ("attention.heads", "silent")
    wide = two.replace("heads: 2", "heads: 2, head_dim: 6")
    assert only(wide, wide.replace("heads: 2", "heads: 3"))["failure"] == "loud"


def test_a_change_that_cannot_stand_alone() -> None:
    """5 key/value heads need the 5 heads that come with them."""
    other = PLAIN.replace("heads: 3, kv_heads: 1", "heads: 5, kv_heads: 5")
    found = fields(compared(PLAIN, other))["attention.kv_heads"]
    assert (found["effect"], found["failure"]) == (None, "loud")
    assert "3 query heads cannot share 5" in found["why"]
    assert fields(compared(PLAIN, other))["attention.heads"]["effect"] is not None


def test_another_kind_takes_what_only_that_kind_has() -> None:
    found = fields(compared(PLAIN, MIXTURE))
    assert set(found) == {"ffn.kind"}
    kind = found["ffn.kind"]
    assert (kind["a"], kind["b"], kind["failure"]) == ("gated", "moe", "loud")
    assert kind["along"] == {
        "experts": 5,
        "top_k": 2,
        "router": {"score": "softmax", "renormalize": True},
    }
    assert kind["effect"] is not None
    assert kind["effect"]["params"] == 2 * (4 * FFN + 5 * 10)


def test_only_the_layers_that_differ_are_named() -> None:
    found = fields(compared(PLAIN.replace("layers: 2", "layers: 6"), WINDOWED))
    assert set(found) == {"attention.window", "position.base"}
    assert found["attention.window"]["layers"] == [0, 1, 2, 3, 4]
    effect = found["attention.window"]["effect"]
    assert effect is not None
    assert effect["cache_bytes_at_context"] == 5 * 16 * (3 - 16)
    assert effect["cache_bytes_per_token"] == -5 * 16


def test_layers_of_different_make() -> None:
    found = compared(PLAIN.replace("layers: 2", "layers: 3"), HYBRID)["differences"]
    assert [one["field"] for one in found] == ["block"]
    assert found[0]["a"] == [{"attention": "gqa"}, {"ffn": "gated"}]
    assert found[0]["b"] == [{"mixer": "mamba2"}, {"ffn": "gated"}]
    assert found[0]["layers"] == [0, 1]
    assert found[0]["failure"] == "loud"
    assert found[0]["effect"] is not None
    assert found[0]["effect"]["cache_bytes_per_token"] == -2 * 16


def test_more_layers_go_on_as_before() -> None:
    found = only(WINDOWED.replace("count: 6", "count: 12").replace("5*local, global", "2*(5*local, global)"), WINDOWED)
    assert (found["field"], found["a"], found["b"]) == ("layers", 12, 6)
    back = only(WINDOWED, WINDOWED.replace("count: 6", "count: 7").replace("5*local, global", "5*local, global, local"))
    assert back["effect"] is not None
    assert back["effect"]["cache_bytes_at_context"] == 16 * 3  # the seventh is local as after every global one


def test_a_layer_that_only_b_has_is_compared_too() -> None:
    longer = WINDOWED.replace("count: 6", "count: 7").replace("5*local, global", "5*local, 2*global")
    found = fields(compared(WINDOWED, longer))
    assert found["attention.window"]["layers"] == [6]
    assert (found["attention.window"]["a"], found["attention.window"]["b"]) == (3, None)
    effect = found["attention.window"]["effect"]
    assert effect is not None
    assert effect["cache_bytes_at_context"] == 16 * (16 - 3)


@pytest.mark.parametrize(
    ("pattern", "count", "expected"),
    [
        ("aabaab", 8, "aabaabaa"),
        ("abbb", 6, "abbbbb"),
        ("aabaa", 6, "aabaab"),
        ("abc", 2, "ab"),
        ("a", 3, "aaa"),
    ],
)
def test_how_a_stack_goes_on(pattern: str, count: int, expected: str) -> None:
    assert "".join(continued(tuple(pattern), count)) == expected


def test_headers_stand_apart() -> None:
    found = compared(PLAIN, PLAIN.replace("name: small", "name: other").replace("dtype: bfloat16", "dtype: float32"))
    assert found["equal"]
    assert found["apart"] == [
        {"field": "name", "a": "small", "b": "other"},
        {"field": "dtype", "a": "bfloat16", "b": "float32"},
    ]


def test_llama_3_and_3_1() -> None:
    """Meta's only changes between them: a longer context, and a scaling of the rotation. Neither raises."""
    found = compared("llama3-8b", "llama3.1-8b")
    assert {name: one["failure"] for name, one in fields(found).items()} == {
        "context": "silent",
        "position.scaling": "silent",
    }
    effect = fields(found)["context"]["effect"]
    assert effect is not None
    assert effect["cache_bytes_at_context"] == (131_072 - 8192) * 131_072


def test_llama_3_and_gpt_2_are_loud() -> None:
    """The twin: what changes shapes is never called silent."""
    found = fields(compared("gpt2", "llama3-8b"))
    assert found["position.kind"]["failure"] == "loud"  # a table of positions is stored
    assert found["norm.bias"]["failure"] == "loud"
    assert found["norm.kind"]["failure"] == "silent"
    assert found["ffn.activation"]["failure"] == "silent"


def test_what_two_kinds_have_under_one_name_becomes_the_other_kind_s() -> None:
    """The gated norm of both mixers has fields of its own in each: an order in Mamba-2's alone."""
    pair = [compile_spec(name).loaded.spec for name in ("qwen3-next-80b", "codestral-mamba")]
    kinds = [one for one in diff(*pair)["differences"] if one["field"] in ("block", "mixer.kind")]
    assert kinds
