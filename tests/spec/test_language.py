"""The language: merging, overrides, patterns, and what diagnostics say and point at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archc.architecture import compile_text
from archc.errors import UsageError
from archc.parts.feed_forward import FeedForward
from archc.spec.diagnostics import Diagnostic, SpecError
from archc.spec.language import SECTIONS, KindFields
from archc.spec.pattern import PatternError, expand

SPEC = """archc: 1
name: a-model
vocab_size: 99
hidden_size: 48
context: 64
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1e-6}
position: {kind: rope, base: 10000}
attention: {heads: 6, kv_heads: 2}
ffn: {kind: gated, activation: silu, width: 80}
layers: 2
"""
KINDS = SPEC.replace(
    "layers: 2",
    """layers:
  count: 3
  kinds:
    local: {attention: {window: 8}, position: {base: 500}}
    plain: {position: null}
    wide: {ffn: {width: 100}}
  pattern: local, plain, local+wide""",
)


def problems(text: str, *overrides: str) -> list[Diagnostic]:
    with pytest.raises(SpecError) as caught:
        compile_text(text, "spec.yaml", overrides)
    return list(caught.value.diagnostics)


def test_a_spec_without_mistakes_has_no_diagnostics() -> None:
    compiled = compile_text(SPEC)
    assert compiled.diagnostics == ()
    assert compiled.architecture.final_norm.eps == 1e-6, "PyYAML alone reads 1e-6 as a text"
    assert compiled.architecture.layers[0].mixer.head_dim == 8
    assert compiled.architecture.layers[0].mixer.scale == 8**-0.5


def test_all_problems_at_once_with_their_places() -> None:
    text = (
        SPEC.replace("kv_heads: 2", "kv_head: 2")
        .replace("vocab_size: 99", "vocab_size: many")
        .replace("width: 80", "width: -80")
    )
    found = {(d.code, d.span.line, d.span.column) for d in problems(text) if d.span}
    assert found == {("E101", 10, 23), ("E103", 3, 13), ("E104", 11, 45)}


def test_a_typo_hides_no_impossible_combination() -> None:
    """Every kind of problem in one file, the checks between fields included."""
    text = (
        SPEC.replace("kv_heads: 2", "kv_heads: 4")
        .replace("kind: gated", "kind: moe, experts: 2, top_k: 3, router: {score: softmax, renormalize: true}")
        .replace("dtype: float32", "dtype: float32\ndtpye: float16\nfamily: lama")
        .replace("eps: 1e-6", "eps: small")
    )
    assert {d.code for d in problems(text)} == {"E101", "E103", "E201", "E204", "E208"}


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("kv_heads: 2", "kv_head: 2", "E101", "did you mean 'kv_heads'?"),
        ("context: 64", "context: 64\nkv_heads: 2", "E101", "'kv_heads' belongs to attention"),
        ("vocab_size: 99\n", "", "E102", "vocab_size is missing"),
        ("kind: rope, ", "", "E102", "position.kind is missing"),
        ("layers: 2\n", "", "E102", "layers is missing"),
        ("context: 64", "context: 64.5", "E103", "must be a whole number"),
        ("tied: false", "tied: 0", "E103", "must be true or false"),
        ("kind: rope", "kind: rop", "E104", "has no kind"),
        ("eps: 1e-6", "eps: 0", "E104", "greater than 0"),
        ("dtype: float32", "dtype: float23", "E104", "choose 'float32'"),
        ("name: a-model", 'name: "a\\nb"', "E104", "may hold only"),
        ("layers: 2", "layers: 99999", "E104", "less than or equal to 10000"),
        ("heads: 6", f"heads: 6, head_dim: {2**40}", "E104", "less than or equal to 65536"),
        ("layers: 2", "layers: {count: 1, kinds: {Big: null}, pattern: a}", "E104", "the key cannot be 'Big'"),
        ("kv_heads: 2", "kv_heads: 4", "E201", "a divisor of 6"),
        ("heads: 6, kv_heads: 2", "heads: 5", "E203", "state attention.head_dim"),
        ("hidden_size: 48", "hidden_size: 42", "E202", "7 of 7 channels would rotate"),
        ("archc: 1", "archc: 1\nfamily: lama", "E208", "did you mean 'llama'?"),
    ],
)
def test_what_is_said(old: str, new: str, code: str, said: str) -> None:
    assert old in SPEC
    found = problems(SPEC.replace(old, new))
    assert [d.code for d in found] == [code]
    assert said in f"{found[0].message}; {found[0].mend}"


def test_kinds_state_only_what_differs() -> None:
    local, plain, wide = compile_text(KINDS).architecture.layers
    assert (local.mixer.window, plain.mixer.window, wide.mixer.window) == (8, None, 8)
    assert local.mixer.rope is not None
    assert local.mixer.rope.base == 500
    assert local.mixer.rope.pairing == "half"
    assert plain.mixer.rope is None
    assert [layer.ffn.width for layer in (local, plain, wide)] == [80, 80, 100]
    assert [layer.kind for layer in (local, plain, wide)] == ["local", "plain", "local+wide"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("local, plain", "names 2 layers, layers.count is 3"),
        ("local, plain, locale", "names the kind 'locale'"),
        ("3*local", "never uses the kind 'plain'"),
        ("local plain", "unexpected 'plain'"),
        ("3*(local", "expected ')'"),
        ("3 local", "a count is followed by *"),
        ("999999999999*local", "more than 10000 layers"),
    ],
)
def test_patterns_name_every_layer_exactly(pattern: str, said: str) -> None:
    found = problems(KINDS.replace("local, plain, local+wide", pattern))
    assert {d.code for d in found} == {"E105"}
    assert any(said in d.message for d in found)


def test_the_caret_is_under_the_mistake_in_a_pattern() -> None:
    for quote in ("", '"'):
        text = KINDS.replace("local, plain, local+wide", f"{quote}local plain{quote}")
        (span,) = {d.span for d in problems(text)}
        assert span is not None
        assert span.text[span.column - 1 :].startswith("plain")


_PATTERN = st.recursive(
    st.sampled_from(["a", "b", "c", "a+b"]).map(lambda name: (name, [name])),
    lambda inner: st.one_of(
        st.tuples(st.integers(1, 4), inner).map(lambda t: (f"{t[0]}*({t[1][0]})", t[1][1] * t[0])),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: (", ".join(p[0] for p in parts), [name for p in parts for name in p[1]])
        ),
    ),
    max_leaves=8,
)


@given(_PATTERN)
def test_patterns_expand_as_arithmetic_says(case: tuple[str, list[str]]) -> None:
    text, expected = case
    assert list(expand(text, 10_000)) == expected


@given(st.text("ab123*+,() \t", max_size=30))
def test_any_pattern_expands_or_says_where_it_fails(text: str) -> None:
    offset = 0
    try:
        assert len(expand(text, 50)) <= 50
    except PatternError as error:
        offset = error.offset
    assert 0 <= offset <= len(text)


def test_overrides_win_and_keep_the_rest() -> None:
    changed = compile_text(SPEC, overrides=["attention.kv_heads=3", "norm.eps=1e-5"]).architecture
    assert changed.layers[0].mixer.kv_heads == 3
    assert changed.layers[0].mixer.heads == 6
    assert changed.final_norm.eps == 1e-5


def test_another_kind_keeps_the_fields_that_it_has_too() -> None:
    ffn = compile_text(SPEC, overrides=["ffn.kind=mlp"]).architecture.layers[0].ffn
    assert isinstance(ffn, FeedForward)
    assert (ffn.gated, ffn.width, ffn.activation) == (False, 80, "silu")
    (missing,) = problems(SPEC, "position.scaling={kind: linear}")
    assert missing.code == "E102"


def test_null_removes_an_inherited_field() -> None:
    windowed = SPEC.replace("kv_heads: 2", "kv_heads: 2, window: 9")
    assert compile_text(windowed).architecture.layers[0].mixer.window == 9
    assert compile_text(windowed, overrides=["attention.window=null"]).architecture.layers[0].mixer.window is None


def test_an_override_that_changes_nothing_is_refused() -> None:
    everywhere = KINDS.replace("plain: {position: null}", "plain: {position: {base: 7}}")
    with pytest.raises(UsageError, match=r"changes nothing.*layers\.kinds\.local\.position\.base"):
        compile_text(everywhere, overrides=["position.base=3"])
    some = compile_text(KINDS, overrides=["ffn.width=90"]).architecture.layers
    assert [layer.ffn.width for layer in some] == [90, 90, 100]


@pytest.mark.parametrize("override", ["attention.kv_heads", "=3", "attention..heads=3", ".=3"])
def test_unreadable_overrides_are_wrong_usage(override: str) -> None:
    with pytest.raises(UsageError, match="path=value"):
        compile_text(SPEC, overrides=[override])


def test_an_override_is_quoted_where_it_is_wrong() -> None:
    (wrong,) = problems(SPEC, "attention.kv_heads=many")
    assert wrong.span is not None
    assert (wrong.span.file, wrong.span.text) == ("--set attention.kv_heads", "many")


def test_rope_and_a_learned_table_do_not_mix() -> None:
    mixed = (
        KINDS.replace("position: {kind: rope, base: 10000}", "position: {kind: learned}")
        .replace("position: {base: 500}", "position: {kind: rope, base: 500}")
        .replace("local+wide", "wide")
    )
    (found,) = problems(mixed)
    assert found.code == "E207"
    assert found.span is not None
    assert "local:" in found.span.text


def test_identical_problems_of_several_kinds_are_said_once() -> None:
    found = problems(KINDS.replace("heads: 6, kv_heads: 2", "heads: 5"))
    assert [d.code for d in found] == ["E203"]


def test_a_kind_may_change_every_section() -> None:
    assert tuple(KindFields.model_fields) == SECTIONS


@pytest.mark.parametrize("name", ["model_config", "model_fields", "check", "build"])
def test_names_of_the_implementation_are_no_keys(name: str) -> None:
    found = problems(f"{SPEC}{name}: 3\n", "vocab_size=many")
    assert {d.code for d in found} == {"E101", "E103"}


def test_turning_and_scaling_are_checked_once_for_the_mixer_that_turns() -> None:
    scaling = "position.scaling={kind: dynamic, factor: 2, original_context: 16}"
    found = problems(SPEC, "attention.head_dim=3", scaling)
    assert [d.code for d in found] == ["E202"], "the pair that is left over is the cause"
    assert [d.code for d in problems(SPEC, "attention.head_dim=2", scaling)] == ["E206"]
