"""What `archc export` writes: keys that Hugging Face's classes read, checked by what those classes make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from archc.architecture import compile_spec, compile_text
from archc.exporting.convert import UnsayableError, export
from archc.exporting.outline import same_model
from archc.importing.convert import convert
from tests.cli.runner import archc

LLAMA = """
archc: 1
name: small
family: llama
vocab_size: 211
hidden_size: 60
context: 173
dtype: float16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 3.0e-6, placement: pre}
position: {kind: rope, base: 71000}
attention: {heads: 6, kv_heads: 2, head_dim: 14}
ffn: {kind: gated, activation: gelu_tanh, width: 92}
layers: 3
"""


def exported(text: str) -> dict[str, Any]:
    return export(compile_text(text))


def test_every_value_of_a_llama_is_stated_under_its_key() -> None:
    config = exported(LLAMA)
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["model_type"] == "llama"
    stated = {
        "vocab_size": 211,
        "hidden_size": 60,
        "max_position_embeddings": 173,
        "dtype": "float16",
        "tie_word_embeddings": True,
        "rms_norm_eps": 3e-6,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 14,
        "attention_bias": False,
        "intermediate_size": 92,
        "mlp_bias": False,
        "num_hidden_layers": 3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 71000.0},
    }
    assert {key: config[key] for key in stated} == stated
    assert config["hidden_act"] in ("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_accurate")


# transformers 5.24: modeling_rope_utils.py
SCALINGS = {
    "{kind: linear, factor: 2.5}": {"rope_type": "linear", "factor": 2.5},
    "{kind: dynamic, factor: 4, original_context: 173}": {"rope_type": "dynamic", "factor": 4.0},
    "{kind: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_context: 64}": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "{kind: yarn, factor: 3, original_context: 64, beta_fast: 16}": {
        "rope_type": "yarn",
        "factor": 3.0,
        "beta_fast": 16.0,
        "original_max_position_embeddings": 64,
    },
}


@pytest.mark.parametrize("scaling", SCALINGS)
def test_scalings_are_spelled_as_transformers_does(scaling: str) -> None:
    text = LLAMA.replace("base: 71000}", f"base: 71000, scaling: {scaling}}}")
    parameters = exported(text)["rope_parameters"]
    assert SCALINGS[scaling].items() <= parameters.items()


def test_layers_with_and_without_a_window() -> None:
    text = LLAMA.replace("family: llama", "family: qwen2").replace("head_dim: 14", "head_dim: 14, bias: [q, k, v]")
    text = text.replace("head_dim: 14", "head_dim: 10").replace(
        "layers: 3", "layers: {count: 3, kinds: {far: {}, near: {attention: {window: 9}}}, pattern: 'near, far, near'}"
    )
    config = exported(text)
    assert config["layer_types"] == ["sliding_attention", "full_attention", "sliding_attention"]
    assert (config["sliding_window"], config["use_sliding_window"]) == (9, True)


def test_a_scale_becomes_the_scalar_that_gemma2_takes_the_root_of() -> None:
    config = export(compile_spec("gemma2-9b"))
    assert config["query_pre_attn_scalar"] == 256
    assert config["attn_logit_softcapping"] == 50.0


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("attention: {heads: 6, kv_heads: 2, head_dim: 14, softcap: 30}", "attention.softcap"),
        ("attention: {heads: 6, kv_heads: 2, head_dim: 14, window: 16}", "attention.window"),
        ("attention: {heads: 6, kv_heads: 2, head_dim: 14, bias: [q]}", "attention.bias"),
    ],
)
def test_what_llama_cannot_say_is_named(change: str, path: str) -> None:
    with pytest.raises(UnsayableError, match=rf"llama cannot say {path} "):
        exported(LLAMA.replace("attention: {heads: 6, kv_heads: 2, head_dim: 14}", change))


def test_a_spec_without_a_family_is_refused() -> None:
    with pytest.raises(UnsayableError, match="names no family"):
        exported(LLAMA.replace("family: llama\n", ""))


def test_one_other_value_is_another_model() -> None:
    wanted = compile_text(LLAMA).architecture
    config = exported(LLAMA)
    for key, value in {"rms_norm_eps": 2e-6, "head_dim": 16, "hidden_act": "silu", "dtype": "bfloat16"}.items():
        changed = compile_text(convert({**config, key: value}, "small").text).architecture
        assert not same_model(changed, wanted)
    assert same_model(compile_text(convert(config, "other name").text).architecture, wanted)


def test_the_command_writes_a_folder_that_transformers_loads(tmp_path: Path) -> None:
    done = archc("export", "mixtral-8x7b", "-o", str(tmp_path / "out"))
    assert done.code == 0
    config = AutoConfig.from_pretrained(tmp_path / "out")
    assert (config.num_local_experts, config.num_experts_per_tok, config.num_hidden_layers) == (8, 2, 32)
    assert archc("report", str(tmp_path / "out"), "--json").json["params"]["total"] == 46_702_792_704


def test_the_command_keeps_a_config_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    done = archc("export", "gpt2", "-o", str(tmp_path))
    assert done.code == 2
    assert "--force" in done.err
    assert file.read_text() == "{}"
    assert archc("export", "gpt2", "-o", str(tmp_path), "--force").code == 0
    assert json.loads(file.read_text())["n_layer"] == 12
    assert archc("export", "gpt2", "-o", str(tmp_path)).code == 0  # nothing would change


def test_the_command_refuses_with_a_finding(tmp_path: Path) -> None:
    done = archc("export", "llama3-8b", "--set", "attention.softcap=30", "-o", str(tmp_path))
    assert done.code == 1
    assert "attention.softcap" in done.err
    assert not list(tmp_path.iterdir())


def test_without_a_folder_it_goes_to_standard_output() -> None:
    assert archc("export", "smollm2-135m").json["num_key_value_heads"] == 3
