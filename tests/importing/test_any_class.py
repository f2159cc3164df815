"""What transformers makes of a config beside its class: AutoConfig, and the keys that masks and caches go by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, DynamicCache

from archc.architecture import compile_text
from archc.importing.convert import convert
from tests.families.gate_case import check
from tests.families.zoo import CASES
from tests.families.zoo_case import FULL, SLIDING, Case

LISTED = {"layer_types": [SLIDING, FULL, FULL], "sliding_window": 9}


def _case(model_type: str, **changes: Any) -> Case:
    base = next(case for case in CASES if case.model_type == model_type)
    return Case("changed", model_type, {**base.config, **changes})


def _undeclared(case: Case) -> tuple[str, ...]:
    return compile_text(convert(case.config_dict(), "tiny").text).architecture.undeclared


@pytest.mark.parametrize("changes", [LISTED, {"layer_types": None}, {"sliding_window": 9}])
def test_a_type_is_the_one_that_auto_classes_read(changes: dict[str, Any], tmp_path: Path) -> None:
    config = _case("mistral", **changes).config_dict()
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = compile_text(convert(config, "tiny").text).architecture
    assert found.family == AutoConfig.from_pretrained(tmp_path).model_type
    assert found.family == ("ministral" if "layer_types" in changes else "mistral")


def test_within_a_wrapper_no_auto_class_reads_it() -> None:
    inner = {**_case("mistral", **LISTED).config_dict(), "model_type": "mistral"}
    text = convert({"model_type": "llava", "text_config": inner}, "tiny").text
    assert compile_text(text).architecture.family == "mistral"
    assert "window_rows: kept" in text


def test_so_its_checkpoint_passes_the_gate() -> None:
    outcome = check(_case("mistral", **LISTED), thoroughly=False)
    assert outcome.passed, outcome


def test_queries_that_see_later_positions_are_undeclared() -> None:
    assert _undeclared(_case("llama", is_causal=False)) == ("queries see later positions too",)
    assert _undeclared(_case("llama", is_causal=True)) == ()


@pytest.mark.parametrize("model_type", ["llama", "gpt2"])
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sliding_window": 9}, "sliding_window"),
        ({"attention_chunk_size": 9}, "attention_chunk_size"),
        (LISTED, "layer_types"),
        ({"sliding_window": None}, ""),
        ({"layer_types": [FULL] * 3, "sliding_window": 9}, ""),
    ],
)
def test_windows_of_the_cache_alone_are_undeclared(model_type: str, changes: dict[str, Any], named: str) -> None:
    case = _case(model_type, **changes)
    assert any(DynamicCache(config=case.hf_config()).is_sliding) == bool(named)
    found = _undeclared(case)
    assert [f"by {named}," in text for text in found] == ([True] if named else [])


@pytest.mark.parametrize("model_type", ["mistral", "phi3", "cwm", "falcon_h1"])
def test_windows_that_a_class_knows_are_not(model_type: str) -> None:
    assert _undeclared(_case(model_type)) == ()
