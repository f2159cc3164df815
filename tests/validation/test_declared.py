"""The spec against config.json: published configs agree with the shipped specs, and every other value is named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from archc.architecture import compile_spec, compile_text
from archc.importing.convert import import_spec
from archc.validation.declared import ConfigDifference, compare_config
from tests.specs.published import NAMES, published

GPT_NEO = {
    "model_type": "gpt_neo",
    "vocab_size": 211,
    "hidden_size": 64,
    "num_layers": 4,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 600,
    "max_position_embeddings": 1024,
}


def folder_of(config: dict[str, Any], folder: Path) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def differences(spec: str, config: dict[str, Any], folder: Path, *overrides: str) -> tuple[ConfigDifference, ...]:
    result = compare_config(compile_spec(spec, overrides).loaded.spec, folder_of(config, folder))
    assert not result.why_not
    assert result.passed == (not result.differences)
    return result.differences


@pytest.mark.parametrize("name", NAMES)
def test_shipped_specs_are_their_published_configs(name: str, tmp_path: Path) -> None:
    assert differences(name, published(name), tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "key", "value", "field", "layers", "declared", "config"),
    [
        ("smollm2-135m", "rms_norm_eps", 1e-6, "norm.eps", 30, 1e-5, 1e-6),
        ("llama3.2-3b", "rope_theta", 10000.0, "position.base", 28, 500000.0, 10000.0),
        ("olmo3-32b", "sliding_window", 2048, "attention.window", 48, 4096, 2048),
        ("kimi-linear-48b", "routed_scaling_factor", 1.0, "ffn.router.scale", 26, 2.446, 1.0),
        ("gpt-oss-20b", "swiglu_limit", 6.0, "ffn.glu.limit", 24, 7.0, 6.0),
        ("xlstm-7b", "gate_soft_cap", 30.0, "mixer.gate_softcap", 32, 15.0, 30.0),
        ("granite3.1-1b", "embedding_multiplier", 3.0, "embedding.scale", None, 12.0, 3.0),
    ],
)
def test_another_value_in_the_config_is_named(
    name: str, key: str, value: object, field: str, layers: int | None, declared: object, config: object, tmp_path: Path
) -> None:
    [found] = differences(name, published(name) | {key: value}, tmp_path)
    assert (found.field, found.declared, found.config, found.stated) == (field, declared, config, True)
    assert (found.layers and len(found.layers)) == layers


def test_a_default_of_the_class_is_said_to_be_one(tmp_path: Path) -> None:
    """LlamaConfig's rms_norm_eps is 1e-6 (transformers, configuration_llama.py)."""
    config = published("smollm2-135m")
    del config["rms_norm_eps"]
    [found] = differences("smollm2-135m", config, tmp_path)
    assert (found.config, found.stated) == (1e-6, False)


def test_an_override_is_a_declaration(tmp_path: Path) -> None:
    [found] = differences("smollm2-135m", published("smollm2-135m"), tmp_path, "norm.eps=1.0e-6")
    assert (found.field, found.declared, found.config) == ("norm.eps", 1e-6, 1e-5)


def test_a_window_by_mask_alone_is_missed(tmp_path: Path) -> None:
    """Longer than the probe of 512 tokens, and not in the reference's cache: nothing else sees it."""
    text = import_spec(str(folder_of(GPT_NEO, tmp_path))).text
    without = re.sub(r"window: 600|window_rows: kept", "window: null", text, count=1).replace("window_rows: kept", "")
    whole, missed = (compare_config(compile_text(one).loaded.spec, tmp_path).differences for one in (text, without))
    assert whole == ()
    [window] = [one for one in missed if one.field == "attention.window"]
    assert (window.layers, window.declared, window.config, window.stated) == ((1, 3), None, 600, True)


@pytest.mark.parametrize(
    "override",
    [
        "attention.scale=0.125",  # 64 channels: as by default
        "attention.scale=0.12500000001",  # the same number in fp32
        "name=mine",
        "dtype=float32",
        "context=4096",
    ],
)
def test_other_words_for_the_same_model_are_no_difference(override: str, tmp_path: Path) -> None:
    assert differences("smollm2-135m", published("smollm2-135m"), tmp_path, override) == ()


def test_a_context_that_is_a_table_counts(tmp_path: Path) -> None:
    [found] = differences("gpt2", published("gpt2"), tmp_path, "context=512")
    assert (found.field, found.declared, found.config) == ("context", 512, 1024)


def test_a_model_that_archc_cannot_import_is_no_failure(tmp_path: Path) -> None:
    result = compare_config(
        compile_spec("smollm2-135m").loaded.spec, folder_of({"model_type": "of_my_own", "auto_map": {}}, tmp_path)
    )
    assert result.passed
    assert "of_my_own" in result.why_not
