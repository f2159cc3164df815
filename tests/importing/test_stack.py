"""Kinds of layer and their pattern: what is written expands to what was there."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archc.architecture import compile_text
from archc.importing.convert import convert
from archc.importing.stack import pattern, stack
from archc.importing.translate import Leaf, Tree
from archc.spec.pattern import expand
from tests.families.zoo import CASES
from tests.families.zoo_case import Case

LIMIT = 10_000
REPEATED = st.recursive(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4),
    lambda inner: st.one_of(
        st.tuples(inner, st.integers(1, 6)).map(lambda both: both[0] * both[1]),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: list(chain.from_iterable(parts))),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(REPEATED.filter(lambda kinds: len(kinds) <= 400))
def test_a_pattern_gives_the_sequence_back(kinds: list[str]) -> None:
    assert expand(pattern(kinds), LIMIT) == tuple(kinds)


@settings(max_examples=300, deadline=None)
@given(REPEATED.filter(lambda kinds: len(kinds) <= 400))
def test_a_pattern_is_no_longer_than_its_runs(kinds: list[str]) -> None:
    runs = [kinds[:1]]
    for kind in kinds[1:]:
        if runs[-1][0] == kind:
            runs[-1].append(kind)
        else:
            runs.append([kind])
    plain = ", ".join(run[0] if len(run) == 1 else f"{len(run)}*{run[0]}" for run in runs)
    assert len(pattern(kinds)) <= len(plain)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["a"], "a"),
        (["a"] * 7, "7*a"),
        (["a"] * 5 + ["b"], "5*a, b"),
        ((["a"] * 5 + ["b"]) * 3, "3*(5*a, b)"),
        ((["a"] * 5 + ["b"]) * 4 + ["a"] * 2, "4*(5*a, b), 2*a"),
        (["d"] * 3 + ["a", "b"] * 29, "3*d, 29*(a, b)"),
    ],
)
def test_the_patterns_of_real_models(kinds: list[str], expected: str) -> None:
    assert pattern(kinds) == expected


def layer(**fields: object) -> Tree:
    return {"attention": {name: Leaf(value) for name, value in fields.items()}}


def test_equal_layers_have_no_kinds() -> None:
    assert stack([layer(heads=4)] * 3).kinds == {}


def test_one_and_true_are_two_kinds() -> None:
    assert len(stack([layer(heads=1), layer(heads=True)]).kinds) == 2


def test_a_kind_states_what_differs_alone() -> None:
    found = stack([layer(heads=4)] * 3 + [layer(heads=4, window=8)])
    assert found.kinds == {"full": {}, "sliding": {"attention": {"window": Leaf(8)}}}
    assert found.pattern == "3*full, sliding"


def test_what_a_kind_lacks_is_null() -> None:
    found = stack([layer(heads=4, window=8)] * 3 + [layer(heads=4)])
    assert found.kinds["full"] == {"attention": {"window": Leaf(None)}}


# Models whose layers differ: what is compiled of each layer is what the table said of it, layer by layer.
MIXED = ("cwm", "gemma2", "gemma3_text-listed", "gpt_neo", "ministral", "qwen2-listed", "qwen3_moe", "smollm3-window")


@pytest.mark.parametrize("case", [c for c in CASES if c.name in MIXED], ids=lambda case: case.name)
def test_compiled_layers_are_those_of_the_config(case: Case) -> None:
    config = case.config_dict()
    whole = compile_text(convert(config, case.name).text).architecture
    windows = [found.mixer.window if found.mixer else None for found in whole.layers]
    assert windows == [expected_window(config, index) for index in range(len(whole.layers))]
    assert len({found.kind for found in whole.layers}) > 1


def expected_window(config: dict[str, object], index: int) -> int | None:
    """The window of a layer as transformers' own config class lists it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
    types = getattr(found, "layer_types", None) or getattr(found, "attention_layers", None)
    if types is None:
        return None
    width = found.window_size if "window_size" in config else found.sliding_window
    return width if types[index] in ("sliding_attention", "local") else None
