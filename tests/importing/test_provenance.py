"""Where every value of an imported spec came from, and spellings that transformers resolves to the same."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from archc.architecture import compile_spec, compile_text
from archc.architecture.model import Architecture
from archc.importing.convert import convert, import_spec
from archc.parts.attention import Attention
from archc.parts.scaling import LinearScaling, Llama3Scaling, YarnScaling
from tests.cli.runner import archc

QWEN3: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 100,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 5000.0,
    "torch_dtype": "float16",
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "attention_bias": False,
}


def spec_of(config: dict[str, Any]) -> Architecture:
    return compile_text(convert(config, "tiny").text).architecture


def attention_of(config: dict[str, Any]) -> Attention:
    mixer = spec_of(config).layers[0].mixer
    assert isinstance(mixer, Attention)
    return mixer


def line(config: dict[str, Any], key: str) -> str:
    """The line of the imported spec that states a key."""
    return next(
        line.strip() for line in convert(config, "tiny").text.splitlines() if line.strip().startswith(f"{key}:")
    )


# ------------------------------------------------------------------------------------------------ comments


def test_a_default_of_the_class_says_so() -> None:
    assert line(QWEN3, "head_dim") == "head_dim: 128  # not in config.json; class default"
    assert line({**QWEN3, "head_dim": 128}, "attention").endswith("head_dim: 128, bias: none, qk_norm: {over: head}}")


def test_null_is_not_stated() -> None:
    llama = {**QWEN3, "model_type": "llama", "head_dim": None}
    assert line(llama, "head_dim") == "head_dim: 16  # not in config.json; class default"


def test_what_several_keys_lead_to_names_those_that_are_missing() -> None:
    config = {key: value for key, value in QWEN3.items() if key != "max_position_embeddings"}
    assert line(config, "context") == "context: 32768  # not in config.json; class default"
    windowed = {"model_type": "gemma2", "num_hidden_layers": 2}
    assert line(windowed, "window") == "window: 4096  # layer_types, sliding_window not in config.json; class default"


@pytest.mark.parametrize("key", sorted(set(QWEN3) - {"model_type", "num_hidden_layers", "num_key_value_heads"}))
def test_a_value_is_commented_when_its_key_goes(key: str) -> None:
    def defaults(config: dict[str, Any]) -> int:
        return convert(config, "tiny").text.count("class default")

    assert defaults({k: v for k, v in QWEN3.items() if k != key}) > defaults(QWEN3)


def test_json_says_where_every_value_came_from(tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    place.write_text(json.dumps(QWEN3))
    values = {entry["path"]: entry for entry in archc("import", str(place), "--json").json["values"]}
    assert values["vocab_size"] == {"path": "vocab_size", "value": 100, "from": "config", "keys": ["vocab_size"]}
    assert values["layers.0.attention.head_dim"]["from"] == "default"
    assert values["layers.0.norm.placement"]["from"] == "class"
    assert values["layers.0.attention.bias"] == {
        "path": "layers.0.attention.bias",
        "value": "none",
        "from": "config",
        "keys": ["attention_bias"],
    }


# ------------------------------------------------------------------------------------------------ spellings

SPELLINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dtype": ({**QWEN3}, {**{k: v for k, v in QWEN3.items() if k != "torch_dtype"}, "dtype": "float16"}),
    "rope_parameters": (
        {**QWEN3},
        {
            **{k: v for k, v in QWEN3.items() if k != "rope_theta"},
            "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
        },
    ),
    "type and rope_type": (
        {**QWEN3, "rope_scaling": {"type": "linear", "factor": 4.0}},
        {**QWEN3, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ),
    "scaling beside the base": (
        {**QWEN3, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
        {
            **{k: v for k, v in QWEN3.items() if k != "rope_theta"},
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
                "rope_theta": 5000.0,
            },
        },
    ),
    "no window": (
        {**QWEN3},
        {**QWEN3, "use_sliding_window": False, "sliding_window": 8, "max_window_layers": 0},
    ),
    "layers of a window": (
        {**QWEN3, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
        {
            **QWEN3,
            "use_sliding_window": True,
            "sliding_window": 8,
            "layer_types": ["full_attention"] * 2 + ["sliding_attention"] * 2,
        },
    ),
    "n_embd": (
        {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 32},
        {
            "model_type": "gpt2",
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
        },
    ),
    "partial_rotary_factor": (
        {"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4, "rotary_pct": 0.5},
        {
            "model_type": "gpt_neox",
            "hidden_size": 64,
            "num_attention_heads": 4,
            "rope_parameters": {"rope_theta": 10000, "rope_type": "default", "partial_rotary_factor": 0.5},
        },
    ),
    "per kind of layer": (
        {"model_type": "gemma3_text", "rope_theta": 7e5, "rope_local_base_freq": 9e3},
        {
            "model_type": "gemma3_text",
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 7e5},
                "sliding_attention": {"rope_type": "default", "rope_theta": 9e3},
            },
        },
    ),
    "quantised": (
        {**QWEN3},
        {**QWEN3, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
    ),
    "auto_map of a known type": ({**QWEN3}, {**QWEN3, "auto_map": {"AutoConfig": "evil.Config"}}),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_two_spellings_are_one_spec(name: str) -> None:
    older, newer = SPELLINGS[name]
    assert spec_of(older) == spec_of(newer)


def test_other_values_are_other_specs() -> None:
    assert spec_of(QWEN3) != spec_of({**QWEN3, "rope_theta": 5001.0})
    assert spec_of(QWEN3) != spec_of({**QWEN3, "torch_dtype": "bfloat16"})


def test_the_values_that_the_spellings_give() -> None:
    assert spec_of(QWEN3).dtype == "float16"
    rope = attention_of(QWEN3).rope
    assert rope is not None
    assert (rope.base, rope.scaling) == (5000.0, None)
    scaled = attention_of(SPELLINGS["scaling beside the base"][1]).rope
    assert scaled is not None
    assert isinstance(scaled.scaling, YarnScaling)
    assert (scaled.scaling.factor, scaled.scaling.original_context) == (4.0, 16)
    linear = attention_of(SPELLINGS["type and rope_type"][0]).rope
    assert linear is not None
    assert isinstance(linear.scaling, LinearScaling)


def test_one_base_per_kind_of_layer() -> None:
    layers = spec_of({**SPELLINGS["per kind of layer"][0], "num_hidden_layers": 6}).layers
    bases = [layer.mixer.rope.base for layer in layers if layer.mixer and layer.mixer.rope]
    assert bases == [9e3] * 5 + [7e5]


def test_llama3_bands_are_read() -> None:
    bands = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    rope = attention_of({**QWEN3, "model_type": "llama", "rope_scaling": bands}).rope
    assert rope is not None
    assert rope.scaling == Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)


def test_quantised_is_said() -> None:
    quantised = {**QWEN3, "quantization_config": {"quant_method": "fp8"}}
    assert "quantised" not in convert(QWEN3, "tiny").text
    assert "quantised (fp8)" in convert(quantised, "tiny").text


# ------------------------------------------------------------------------------------------------ wrappers


def test_a_wrapper_gives_its_text_model_and_says_so(tmp_path: Path) -> None:
    text = {**QWEN3, "model_type": "qwen3_vl_text", "num_hidden_layers": 3}
    wrapper = {"model_type": "qwen3_vl", "text_config": text, "vision_config": {"depth": 2}}
    (tmp_path / "config.json").write_text(json.dumps(wrapper))
    imported = import_spec(str(tmp_path))
    assert imported.wrapper == "qwen3_vl"
    assert "Its text model alone, qwen3_vl_text" in imported.text
    assert len(compile_text(imported.text).architecture.layers) == 3
    assert line(wrapper, "hidden_size") == "hidden_size: 64"
    note = "Its text model alone, qwen3_vl_text"
    printed = archc("import", str(tmp_path))
    assert note in printed.out
    assert note not in printed.err  # once is enough
    assert note in archc("import", str(tmp_path), "-o", str(tmp_path / "spec.yaml")).err
    assert note in archc("report", str(tmp_path)).out


def test_the_head_is_tied_as_the_wrapper_says() -> None:
    text = {**QWEN3, "model_type": "qwen3_vl_text"}
    for tied in (True, False):
        wrapper = {"model_type": "qwen3_vl", "text_config": text, "tie_word_embeddings": tied}
        assert spec_of(wrapper).head.tied is tied


def test_a_wrapper_that_states_its_text_model_flat() -> None:
    flat = {**QWEN3, "model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    spec = spec_of(flat)
    assert (spec.hidden_size, spec.head.tied, len(spec.layers)) == (64, True, 4)


# ------------------------------------------------------------------------------------------------ GGUF


def gguf(architecture: str, values: dict[str, int | float]) -> bytes:
    """A GGUF file of version 3 without tensors: metadata alone (32-bit numbers, and three tokens)."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    entries = [text("general.architecture") + struct.pack("<I", 8) + text(architecture)]
    entries += [text("general.name") + struct.pack("<I", 8) + text("tiny")]
    for key, value in values.items():
        form, kind = ("<I", 4) if isinstance(value, int) else ("<f", 6)
        entries.append(text(f"{architecture}.{key}") + struct.pack("<I", kind) + struct.pack(form, value))
    tokens = b"".join(text(token) for token in ("a", "b", "c"))
    entries.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + tokens)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


SMOL = {
    "vocab_size": 49152,
    "context_length": 8192,
    "embedding_length": 576,
    "block_count": 30,
    "feed_forward_length": 1536,
    "attention.head_count": 9,
    "attention.head_count_kv": 3,
    "rope.freq_base": 100000.0,
    "rope.dimension_count": 64,
    "attention.layer_norm_rms_epsilon": 1e-5,
}


def test_gguf_metadata_is_a_config(tmp_path: Path) -> None:
    place = tmp_path / "smollm2.gguf"
    place.write_bytes(gguf("llama", SMOL))
    imported = compile_spec(str(place)).architecture
    shipped = compile_spec("smollm2-135m").architecture
    assert imported.layers == shipped.layers
    assert sum(tensor.size for tensor in imported.tensors()) == 134_515_008
    spec = yaml.safe_load(import_spec(str(place)).text)
    assert spec["norm"]["eps"] == 1e-5  # and not 9.999999747378752e-06, as 32 bits give it
    assert "activation: silu  # not in the GGUF file; class default" in import_spec(str(place)).text


def test_another_gguf_file_is_another_model(tmp_path: Path) -> None:
    place = tmp_path / "other.gguf"
    place.write_bytes(gguf("llama", {**SMOL, "block_count": 31}))
    assert len(compile_spec(str(place)).architecture.layers) == 31


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_heads_of_another_size_are_read_from_a_gguf_file(tmp_path: Path, architecture: str) -> None:
    """Mistral Nemo's are smaller than its width over heads; transformers takes the class's default."""
    place = tmp_path / "nemo.gguf"
    place.write_bytes(gguf(architecture, {**SMOL, "attention.key_length": 24, "attention.value_length": 24}))
    (layer, _), *_ = compile_spec(str(place)).architecture.distinct
    (mixer,) = layer.mixers()
    assert mixer.shape is not None
    assert mixer.shape.head_dim == 24
    assert "head_dim: 24\n" in import_spec(str(place)).text


def test_an_architecture_that_transformers_does_not_read(tmp_path: Path) -> None:
    place = tmp_path / "other.gguf"
    place.write_bytes(gguf("nope", SMOL))
    done = archc("import", str(place))
    assert done.code == 3
    assert "nope is not supported" in done.err
