"""The language: merging, overrides, patterns, and what diagnostics say and point at."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archc.architecture import compile_text
from archc.errors import UsageError
from archc.parts.feed_forward import FeedForward
from archc.spec.diagnostics import Diagnostic, SpecError
from archc.spec.language import SECTIONS, KindFields
from archc.spec.pattern import PatternError, expand
from tests.layers import attention_of, feed_forward_of

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
    assert compiled.loaded.spec.header.norm.eps == 1e-6, "PyYAML alone reads 1e-6 as a text"
    assert attention_of(compiled.architecture.layers[0]).head_dim == 8
    assert attention_of(compiled.architecture.layers[0]).scale == 8**-0.5


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
    assert (attention_of(local).window, attention_of(plain).window, attention_of(wide).window) == (8, None, 8)
    rope = attention_of(local).rope
    assert rope is not None
    assert (rope.base, rope.pairing) == (500, "half")
    assert attention_of(plain).rope is None
    assert [feed_forward_of(layer).width for layer in (local, plain, wide)] == [80, 80, 100]
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
    assert attention_of(changed.layers[0]).kv_heads == 3
    assert attention_of(changed.layers[0]).heads == 6
    assert changed.final_norm is not None
    assert changed.final_norm.eps == 1e-5


def test_another_kind_keeps_the_fields_that_it_has_too() -> None:
    ffn = compile_text(SPEC, overrides=["ffn.kind=mlp"]).architecture.layers[0].ffn
    assert isinstance(ffn, FeedForward)
    assert (ffn.gated, ffn.width, ffn.activation) == (False, 80, "silu")
    (missing,) = problems(SPEC, "position.scaling={kind: linear}")
    assert missing.code == "E102"


def test_null_removes_an_inherited_field() -> None:
    windowed = SPEC.replace("kv_heads: 2", "kv_heads: 2, window: 9")
    without = compile_text(windowed, overrides=["attention.window=null"])
    assert attention_of(compile_text(windowed).architecture.layers[0]).window == 9
    assert attention_of(without.architecture.layers[0]).window is None


def test_an_override_that_changes_nothing_is_refused() -> None:
    everywhere = KINDS.replace("plain: {position: null}", "plain: {position: {base: 7}}")
    with pytest.raises(UsageError, match=r"changes nothing.*layers\.kinds\.local\.position\.base"):
        compile_text(everywhere, overrides=["position.base=3"])
    some = compile_text(KINDS, overrides=["ffn.width=90"]).architecture.layers
    assert [feed_forward_of(layer).width for layer in some] == [90, 90, 100]


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
    assert KindFields.__struct_fields__ == SECTIONS


@pytest.mark.parametrize("name", ["__struct_fields__", "check", "build"])
def test_names_of_the_implementation_are_no_keys(name: str) -> None:
    found = problems(f"{SPEC}{name}: 3\n", "vocab_size=many")
    assert {d.code for d in found} == {"E101", "E103"}


def test_turning_and_scaling_are_checked_once_for_the_mixer_that_turns() -> None:
    scaling = "position.scaling={kind: dynamic, factor: 2, original_context: 16}"
    found = problems(SPEC, "attention.head_dim=3", scaling)
    assert [d.code for d in found] == ["E202"], "the pair that is left over is the cause"
    assert [d.code for d in problems(SPEC, "attention.head_dim=2", scaling)] == ["E206"]


def scaled(kind: str, **fields: object) -> str:
    inside = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return SPEC.replace("base: 10000", f"base: 10000, scaling: {{kind: {kind}, {inside}}}")


@pytest.mark.parametrize(("fast", "slow"), [(1, 32), (4, 4)])
def test_the_ramp_of_yarn_falls(fast: float, slow: float) -> None:
    found = problems(scaled("yarn", factor=4, original_context=16, beta_fast=fast, beta_slow=slow))
    assert [(d.code, d.path) for d in found] == [("E206", "position.scaling.beta_fast")]
    assert compile_text(scaled("yarn", factor=4, original_context=16, beta_fast=32, beta_slow=1)).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (scaled("yarn", factor=4, original_context=16, beta_slow="1e-308"), "E104"),
        (scaled("longrope", original_context=1, short_factors="[1, 1, 1, 1]", long_factors="[2, 2, 2, 2]"), "E104"),
        (scaled("longrope", original_context=9, short_factors="[1, 1, 1, 1]", long_factors="[2, 2, 2, 0]"), "E104"),
    ],
)
def test_scalings_that_overflow_are_refused(text: str, code: str) -> None:
    assert [d.code for d in problems(text)] == [code]


@pytest.mark.parametrize(
    "text",
    [
        scaled("yarn", factor=4, original_context=16, beta_fast="9e8", beta_slow="1e-9"),
        scaled("longrope", original_context=2, short_factors="[1, 1, 1, 1]", long_factors="[2, 2, 2, 1e-9]"),
    ],
)
def test_scalings_at_their_bounds_are_finite(text: str) -> None:
    rope = attention_of(compile_text(text).architecture.layers[0]).rope
    assert rope is not None
    assert all(0 < frequency < float("inf") for frequency in rope.frequencies(64))
    assert 1 <= rope.attention_factor < 10


# ---------------------------------------------------------------- hostile and careless input


def test_a_path_of_thousands_of_steps_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="5000 steps"):
        compile_text(SPEC, overrides=[".".join(["a"] * 5000) + "=1"])


@pytest.mark.parametrize("place", ["header", "section", "kinds", "block"])
def test_thousands_of_unknown_keys_take_no_time(place: str) -> None:
    """50,000 keys, met again in every one of 50 kinds; one look for the nearest key takes about a millisecond."""
    keys = ", ".join(f"k{number}" for number in range(50_000))
    kinds = ", ".join(f"n{number}: {{attention: {{window: {number + 1}}}}}" for number in range(50))
    layers = f"{{count: 50, kinds: {{{kinds}}}, pattern: '{', '.join(f'n{number}' for number in range(50))}'}}"
    text = {
        "header": SPEC + "\n".join(f"k{number}: 1" for number in range(50_000)),
        "section": SPEC.replace("heads: 6", f"heads: 6, {keys}"),
        "kinds": SPEC.replace("heads: 6", f"heads: 6, {keys}").replace("layers: 2", f"layers: {layers}"),
        "block": f"{SPEC}block: [{{attention: {{}}, {keys}}}, {{ffn: {{}}}}]\n",
    }[place]
    before = time.process_time()
    found = problems(text)
    assert time.process_time() - before < 20
    assert len(found) >= 50_000
    assert {d.code for d in found} == {"E101"}


def test_a_block_of_thousands_of_branches_is_refused() -> None:
    found = problems(f"{SPEC}block: [{', '.join(['{ffn: {}}'] * 5000)}]\n")
    assert [(d.code, d.message) for d in found] == [("E104", "block has 5000 branches")]


def test_no_word_of_the_implementation_is_said() -> None:
    for override in ("layers=0", "layers=many", "layers=[1]", "attention.bias=3", "embedding.scale=-1", "position=3"):
        for found in problems(SPEC, override):
            assert "Fields" not in f"{found.message} {found.mend}", override
    (found,) = problems(SPEC, "layers=0")
    assert found.mend == "it should be greater than 0"


def test_a_key_is_suggested_once() -> None:
    (found,) = problems(f"{SPEC}qqq: 1\n")
    known = found.mend.removeprefix("known keys here: ").split(", ")
    assert len(known) == len(set(known))
    assert {"norm", "mixer", "block", "final_norm"} <= set(known)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but words\n"])
def test_an_empty_spec_is_told_how_to_begin(text: str) -> None:
    (found,) = problems(text)
    assert (found.code, found.mend) == ("E001", "start with archc: 1")
    (valueless,) = problems(SPEC, "norm.eps= # nothing")
    assert valueless.mend == "write null for no value"


@pytest.mark.parametrize("quote", ["", '"'])
def test_an_unknown_kind_in_a_pattern_is_pointed_at(quote: str) -> None:
    (found, *_) = problems(KINDS.replace("local, plain, local+wide", f"{quote}local, plain, local+widee{quote}"))
    assert found.span is not None
    assert found.span.text[found.span.column - 1 :].startswith("widee")
    assert (found.span.length, found.mend) == (5, "did you mean 'wide'?")


def test_an_unknown_kind_in_a_folded_pattern_is_pointed_at_as_a_whole() -> None:
    (found, *_) = problems(KINDS.replace("local, plain, local+wide", "local,\n    plain, wide,\n    localle"))
    assert found.span is not None
    assert found.span.text[found.span.column - 1 :] == "local,"


# ---------------------------------------------------------------- branches


BLOCK = f"{SPEC}block: [{{ffn: {{width: 30}}, norm: {{eps: 1e-3}}}}, {{attention: {{}}}}, {{ffn: {{}}, shared: end}}]\n"


def test_a_block_lists_the_branches() -> None:
    """What a branch states is merged over the section of the same name; what is shared is counted once."""
    architecture = compile_text(BLOCK).architecture
    first, second = architecture.layers
    assert first == second
    assert [slot for branch in first.branches for slot, _ in branch.parts] == ["ffn", "attention", "ffn_2"]
    assert [branch.pre_norm.eps for branch in first.branches if branch.pre_norm] == [1e-3, 1e-6, 1e-6]
    assert [part.width for part in first.parts() if isinstance(part, FeedForward)] == [30, 80]
    ends = [tensor.name for tensor in architecture.tensors() if "end" in tensor.name]
    assert ends == [
        "shared.end.ffn_2_norm.weight",
        *(f"shared.end.ffn_2.{name}.weight" for name in ("gate", "up", "down")),
    ]


def test_a_kind_may_state_its_branches() -> None:
    text = SPEC.replace(
        "layers: 2", "layers: {count: 2, kinds: {one: {block: [{ffn: {}}]}, two: null}, pattern: 'one, two'}"
    )
    one, two = compile_text(text).architecture.layers
    assert ([branch.slot for branch in one.branches], one.mixer) == (["ffn"], None)
    assert [branch.slot for branch in two.branches] == ["attention", "ffn"]


@pytest.mark.parametrize(
    ("block", "code", "path"),
    [
        ("3", "E103", "block"),
        ("[]", "E103", "block"),
        ("[3]", "E103", "block"),
        ("[{}]", "E102", "block"),
        ("[{ffn: null}]", "E103", "ffn"),
        ("[{ffn: {widht: 3}}]", "E101", "ffn.widht"),
        ("[{fnn: {}, attention: {}}]", "E101", "fnn"),
        ("[{ffn: {}, shared: Two}]", "E104", "shared"),
        ("[{ffn: {}}, {attention: {kv_heads: 4}}]", "E201", "attention.kv_heads"),
        ("[{attention: {}, residual: {branch: 0}}]", "E104", "residual.branch"),
    ],
)
def test_a_wrong_block_is_refused_at_its_place(block: str, code: str, path: str) -> None:
    found = problems(f"{SPEC}block: {block}\n")
    assert [(d.code, d.path) for d in found] == [(code, path)]
    assert found[0].span is not None
    assert found[0].span.line == 13


def test_an_override_that_no_branch_takes_is_refused() -> None:
    with pytest.raises(UsageError, match=r"ffn\.width changes nothing: no branch of block takes it"):
        compile_text(SPEC + "block: [{ffn: {width: 7}}]\n", overrides=["ffn.width=9"])
    changed = compile_text(BLOCK, overrides=["ffn.width=9"]).architecture.layers[0]
    assert [part.width for part in changed.parts() if isinstance(part, FeedForward)] == [30, 9]


@pytest.mark.parametrize(
    ("overrides", "slots"),
    [(["attention=null"], ["ffn"]), (["ffn=null"], ["attention"]), (["attention=null", "position=null"], ["ffn"])],
)
def test_a_layer_may_lack_a_part(overrides: list[str], slots: list[str]) -> None:
    layer = compile_text(SPEC, overrides=overrides).architecture.layers[0]
    assert [branch.slot for branch in layer.branches] == slots


def test_a_layer_without_parts_is_none() -> None:
    found = problems(SPEC, "attention=null", "ffn=null")
    assert [(d.code, d.message) for d in found] == [("E102", "the layer has no part")]
