"""What does not hold between both ends of a model is found when a spec is checked."""

from __future__ import annotations

import pytest

from archc.architecture import compile_text
from archc.spec.diagnostics import SpecError
from tests.codegen.combinations import BASE, layers

CLUSTERS = "logits.adaptive={frequent: 51, clusters: [60, %d], division: 2}"


def codes(*overrides: str) -> set[str]:
    try:
        return {found.code for found in compile_text(BASE, overrides=overrides).diagnostics}
    except SpecError as error:
        return {found.code for found in error.diagnostics}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (["logits.vocab_size=211"], ["logits.vocab_size=212"]),
        (["logits.given=211"], ["logits.given=212"]),
        (["logits={vocab_size: 90, given: 90}"], ["logits={vocab_size: 90, given: 91}"]),
        ([CLUSTERS % 100], [CLUSTERS % 101]),
        ([CLUSTERS % 20, "logits.vocab_size=131"], [CLUSTERS % 100, "logits.vocab_size=131"]),
    ],
)
def test_a_head_scores_tokens_that_are_there(right: list[str], wrong: list[str]) -> None:
    assert codes(*right) == set()
    assert codes(*wrong) == {"E212"}


def test_sines_and_cosines_come_in_pairs() -> None:
    heads, sinusoids = "attention={heads: 3, kv_heads: 1, head_dim: 16}", "position={kind: sinusoidal, slowest: exact}"
    assert codes(heads, sinusoids, "hidden_size=4") == set()
    assert codes(heads, sinusoids, "hidden_size=2") == {"E202"}
    assert codes(heads, "position={kind: sinusoidal}", "hidden_size=2") == set()
    assert codes(heads, "position={kind: sinusoidal}", "hidden_size=75") == {"E202"}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("{kind: sinusoidal}", "{kind: sinusoidal}", set()),
        ("{kind: sinusoidal}", "{kind: none}", set()),
        ("{kind: sinusoidal}", "{kind: sinusoidal, offset: 2}", {"E207"}),
        ("{kind: sinusoidal}", "{kind: learned}", {"E207"}),
        ("{kind: learned}", "{kind: learned, offset: 2}", {"E207"}),
        ("{kind: sinusoidal}", "{kind: rope, base: 700}", {"E207"}),
    ],
)
def test_all_layers_get_the_same_positions_with_the_embedding(one: str, other: str, found: set[str]) -> None:
    kinds = layers("one, other", one=f"{{position: {one}}}", other=f"{{position: {other}}}")
    assert codes(kinds, "position=null") == found


def test_a_scale_that_is_not_there_is_not_rounded() -> None:
    """Then both specs are one model."""
    built = [
        compile_text(BASE, overrides=[f"embedding.scale_rounded={value}"]).architecture for value in ("true", "false")
    ]
    assert built[0] == built[1]
    scaled = [
        compile_text(BASE, overrides=["embedding.scale=3.7", f"embedding.scale_rounded={value}"]).architecture
        for value in ("true", "false")
    ]
    assert scaled[0] != scaled[1]
