"""Rotary tables of imported configs against those that Hugging Face's modules compute, kind by kind of layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from archc.architecture import compile_text
from archc.importing.convert import convert
from archc.parts.position import Rope
from tests.families.zoo import CASES, cpu_model
from tests.families.zoo_case import FULL, SLIDING, Case, rope

_YARN = rope(10000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=43)
_NESTED = {SLIDING: {**_YARN, "truncate": False}, FULL: rope(5300.0)}
CHANGED: list[tuple[str, dict[str, Any]]] = [
    ("deepseek_v3", {**_YARN, "mscale": 0.7, "mscale_all_dim": 0.5}),
    ("deepseek_v3", {**_YARN, "truncate": False}),
    ("llama", {**_YARN, "truncate": None}),
    ("qwen3_next", rope(5300.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)),
    ("dory", _NESTED),
    ("lfm3", _NESTED),
]
Table = tuple[tuple[float, ...], float]


def _case(model_type: str, parameters: dict[str, Any]) -> Case:
    base = next(case for case in CASES if case.model_type == model_type)
    return Case("changed", model_type, {**base.config, "rope_parameters": parameters})


def _theirs(case: Case) -> set[Table]:
    """Frequencies and the factor on cosines and sines of every table that the model's modules hold."""
    found = set()
    for module in cpu_model(case).modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name:
                factor = getattr(module, name.replace("inv_freq", "attention_scaling"))
                found.add(_rounded(buffer.tolist(), factor))
    return found


def _ours(text: str) -> set[Table]:
    return {_rounded(found.frequencies(), found.attention_factor) for found in _ropes(text)}


def _ropes(text: str) -> Iterator[Rope]:
    for layer in compile_text(text).architecture.layers:
        yield from (mixer.rope for mixer in layer.mixers() if mixer.rope is not None)


def _rounded(frequencies: list[float], factor: float) -> Table:
    return tuple(float(f"{frequency:.4g}") for frequency in frequencies), round(factor, 4)


@pytest.mark.parametrize(("model_type", "parameters"), CHANGED)
def test_tables_are_those_of_the_modules(model_type: str, parameters: dict[str, Any]) -> None:
    case = _case(model_type, parameters)
    assert _ours(convert(case.config_dict(), "tiny").text) == _theirs(case)


def test_a_length_beside_the_parameters_goes_before_the_one_among_them() -> None:
    """Not where a class reads the config, but where its rope functions do, whatever keys the class has."""
    inside = _case("llama", _YARN)
    beside = Case("beside", "llama", {**inside.config, "original_max_position_embeddings": 20})
    ours, theirs = (_ours(convert(case.config_dict(), "tiny").text) for case in (inside, beside))
    assert (ours, theirs) == (_theirs(inside), _theirs(beside))
    assert ours != theirs


def test_another_end_of_the_ramp_is_another_table() -> None:
    """The reference reads `truncate` beside the kinds alone: within one, as configs state it, it changes nothing."""
    stated = _case("dory", _NESTED)
    text = convert(stated.config_dict(), "tiny").text
    assert "truncate" not in text
    assert _ours(text.replace("kind: yarn", "kind: yarn, truncate: false")) != _theirs(stated)
