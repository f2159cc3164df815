"""Every rule: a spec that it is about, and a twin that differs in the one thing that matters."""

import pytest

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.spec.diagnostics import Level
from tests.advice.specs import MAMBA, PLAIN, advice, codes, layered, pointed_at, with_lines

POST_SUM = "norm: {kind: layernorm, eps: 1.0e-5, placement: post_sum}"
WIDE = "hidden_size: 6144"
YARN = "{kind: yarn, factor: 4, original_context: 25}"


def heads(heads: int, kv_heads: int) -> str:
    return f"attention: {{heads: {heads}, kv_heads: {kv_heads}, head_dim: 8}}"


def attention(more: str) -> str:
    return f"attention: {{heads: 8, kv_heads: 2, head_dim: 8, {more}}}"


def test_the_small_spec_deserves_no_advice() -> None:
    assert codes(PLAIN) == []


GIVEN = [
    # 101 rows would be one more than there are, at position 100.
    ("N501", "learned", ["position: {kind: learned}"]),
    # None of 2 … 8 divides 11, 13 or 71; 22, 33 and 55 can be divided, but not along with their 11 key/value heads.
    ("N502", "11", [heads(11, 11)]),
    ("N502", "11", [heads(22, 11)]),
    ("N502", "11", [heads(33, 11)]),
    ("N502", "11", [heads(55, 11)]),
    ("N502", "13", [heads(13, 13)]),
    ("N502", "71", [heads(71, 1)]),
    # One short of two tiles, one more than one, and a tile and a half.
    ("N503", "127", ["vocab_size: 127"]),
    ("N503", "65", ["vocab_size: 65"]),
    ("N503", "96", ["vocab_size: 96"]),
    ("N503", "100", ["logits: {vocab_size: 100}"]),
    ("N504", "all", ["position: {kind: none}", attention("bias: all")]),
    ("N504", "[k]", ["position: {kind: alibi}", attention("bias: [k]")]),
    ("N505", "post_sum", [POST_SUM, "layers: 18"]),
    ("N506", "attention", [WIDE]),
    ("N506", "attention", [WIDE, attention("sinks: column")]),
    ("N507", "true", ["vocab_size: 128000", "embedding: {tied: true}"]),
    ("N508", "100", [attention("window: 100")]),
    ("N508", "101", [attention("chunk: 101")]),
    ("W403", "position", ["trained_context: 99"]),
    ("W403", "position", ["trained_context: 32", attention("window: 33")]),
    # 25 × 3.9 = 97.5 positions
    (
        "W402",
        "3.9",
        ["trained_context: 25", "position: {kind: rope, base: 10000, scaling: {kind: linear, factor: 3.9}}"],
    ),
]
NOT_GIVEN = [
    ("N501", ["position: {kind: sinusoidal}"]),
    ("N501", ["position: {kind: alibi}"]),
    ("N502", [heads(7, 7)]),  # over 7 devices
    ("N502", [heads(9, 3)]),  # over 3
    ("N502", [heads(16, 1)]),
    ("N502", [heads(1, 1)]),
    ("N503", ["vocab_size: 64"]),
    ("N503", ["vocab_size: 100", "logits: {vocab_size: 64}"]),
    ("N504", ["position: {kind: none}", attention("bias: [q, v, o]")]),
    ("N504", [attention("bias: all")]),  # rotated
    ("N504", ["position: {kind: none}", attention("bias: all, qk_norm: {over: head}")]),
    ("N504", ["position: {kind: none}", attention("bias: all, softcap: 50")]),
    ("N504", ["position: {kind: none}", attention("bias: all, clip: 8")]),
    ("N504", ["position: {kind: none}", attention("bias: all, sinks: column")]),
    ("N504", ["position: {kind: none}", attention("bias: all, sinks: sigmoid")]),
    ("N504", ["position: {kind: none}", attention("bias: [q, k], values: keys")]),
    ("N505", [POST_SUM, "layers: 17"]),
    ("N505", [POST_SUM, "layers: 18", "residual: {stream: 1.5}"]),
    ("N505", [POST_SUM.replace("post_sum", "post"), "layers: 18"]),
    ("N505", [POST_SUM.replace("post_sum", "pre"), "layers: 18"]),
    ("N506", ["hidden_size: 6143"]),
    ("N506", [WIDE, attention("qk_norm: {over: width}")]),
    ("N506", [WIDE, attention("softcap: 50")]),
    ("N506", [WIDE, attention("clip: 8")]),
    ("N507", ["vocab_size: 127936", "embedding: {tied: true}"]),
    ("N507", ["vocab_size: 128000"]),
    ("N508", [attention("window: 99")]),
    ("N508", [attention("chunk: 99")]),
    ("W403", ["trained_context: 100"]),
    ("W403", ["trained_context: 200"]),
    ("W403", ["trained_context: 32", attention("window: 32")]),
    ("W403", ["trained_context: 32", attention("chunk: 32")]),
    ("W403", ["trained_context: 32", "position: {kind: none}"]),
    ("W403", ["trained_context: 32", "position: {kind: alibi}"]),
    ("W402", ["trained_context: 25", "position: {kind: rope, base: 10000, scaling: {kind: linear, factor: 4}}"]),
    ("W402", ["position: {kind: rope, base: 10000, scaling: {kind: linear, factor: 2}}"]),
]


@pytest.mark.parametrize(("code", "text", "lines"), GIVEN)
def test_given_alone_at_its_place(code: str, text: str, lines: list[str]) -> None:
    (found,) = advice(with_lines(*lines))
    assert found.code == code
    assert found.level is (Level.WARNING if code.startswith("W") else Level.NOTE)
    assert pointed_at(found) == text
    assert found.mend


@pytest.mark.parametrize(("code", "lines"), NOT_GIVEN)
def test_not_given(code: str, lines: list[str]) -> None:
    assert codes(with_lines(*lines)) == []
    assert code in {given for given, _, _ in GIVEN}


def test_padding_is_counted() -> None:
    (found,) = advice(with_lines("vocab_size: 50257"))
    assert found.mend == "store 50304, of which 47 are padding"  # 786 × 64


def test_untied_ends_are_priced() -> None:
    (found,) = advice(with_lines("vocab_size: 128000", "embedding: {tied: true}"))
    assert "cost 8192000 parameters more" in found.mend  # 128,000 × 64


def test_the_factor_that_is_named_reaches() -> None:
    (found,) = advice(with_lines("trained_context: 30"))  # 100 / 30 = 3.33…
    assert "factor: 3.4" in found.mend
    mended = "position: {kind: rope, base: 10000, scaling: {kind: yarn, factor: 3.4, original_context: 30}}"
    assert codes(with_lines("trained_context: 30", mended)) == []


def test_the_report_states_the_length_of_training() -> None:
    scaled = f"position: {{kind: rope, base: 10000, scaling: {YARN}}}"
    found = {
        text: build_report(compile_text(text).architecture)["limits"]["trained_context"]
        for text in (PLAIN, with_lines(scaled), with_lines(scaled, "trained_context: 30"))
    }
    assert list(found.values()) == [100, 25, 30]


def test_a_model_without_attention_has_no_logits() -> None:
    assert codes(with_lines(WIDE, "position: null", "attention: null", f"mixer: {MAMBA}")) == []


def test_the_scaling_of_one_kind_of_layer_tells_of_training() -> None:
    scaled = f"scaled: {{position: {{scaling: {YARN}}}}}"
    (found,) = advice(layered(f"{{{scaled}, forgotten: {{}}}}", "scaled, forgotten"))
    assert (found.code, found.path) == ("W403", "position")
    assert codes(layered(f"{{{scaled}, local: {{attention: {{window: 25}}}}}}", "scaled, local")) == []
    assert codes(layered(f"{{{scaled}, none: {{position: {{kind: none}}}}}}", "scaled, none")) == []


def test_said_once_for_all_kinds_and_placed_in_the_kind_that_states_it() -> None:
    assert codes(layered("{a: {ffn: {width: 100}}, b: {}}", "a, b", WIDE)) == ["N506"]
    (found,) = advice(layered("{a: {attention: {window: 120}}, b: {}}", "a, b"))
    assert (found.code, pointed_at(found), found.path) == ("N508", "120", "attention.window")


def test_placed_in_the_branch_that_states_it() -> None:
    block = "block: [{attention: {window: 10}}, {attention: {window: 300}}, {ffn: {}}]"
    (found,) = advice(with_lines(block))
    assert (found.code, pointed_at(found)) == ("N508", "300")
