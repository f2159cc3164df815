"""Configs that make no sense: one clear line and exit code 1 or 3, never a traceback. Nothing of a repository runs."""

from __future__ import annotations

import json
import struct
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archc.architecture import compile_text
from archc.errors import ArchcError, IncompleteError
from archc.importing.convert import convert, import_spec
from archc.importing.resolve import UnknownModelError
from tests.cli.runner import archc

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
}
QWEN3 = {**LLAMA, "model_type": "qwen3", "num_key_value_heads": 4}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_key_value_heads": 4}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no heads": ({**LLAMA, "num_attention_heads": 0}, "zero"),
    "negative size": ({**LLAMA, "hidden_size": -64}, "hidden_size cannot be -64"),
    "text for a number": ({**LLAMA, "hidden_size": "64"}, "'hidden_size' expected int, got str"),
    "list for a number": ({**LLAMA, "num_hidden_layers": [2]}, "'num_hidden_layers' expected int, got list"),
    "null for a number": ({**LLAMA, "hidden_size": None}, "hidden_size"),
    "half a channel": ({**LLAMA, "intermediate_size": 80.5}, "80.5"),
    "no layers": ({**LLAMA, "num_hidden_layers": 0}, "0 layers"),
    "a list for every layer": ({**QWEN3, "num_hidden_layers": 10**9}, "1000000000 layers"),
    "layers of an inner config": (
        {"model_type": "gemma3", "text_config": {"num_hidden_layers": 10**9}},
        "1000000000 layers",
    ),
    "text_config in a text model": ({**LLAMA, "text_config": "x"}, "model_type"),
    "escapes in a dtype": ({**LLAMA, "dtype": "\x1b[31m"}, r"\x1b[31m"),
    "too many layers": ({**LLAMA, "num_hidden_layers": 10**9}, "1000000000 layers"),
    "beyond 64 bits": ({**LLAMA, "vocab_size": 10**400}, "does not fit in 64 bits"),
    "no number": ({**LLAMA, "rms_norm_eps": float("nan")}, "norm.eps"),
    "unequal groups": ({**LLAMA, "num_key_value_heads": 3}, "4 query heads cannot share 3 key/value heads"),
    "layer_types too short": ({**QWEN3, "layer_types": ["full_attention"]}, "`layer_types` (1)"),
    "layer_types unknown": ({**QWEN3, "layer_types": ["full_attention", "half_attention"]}, "layer_types"),
    "layer_types a text": ({**QWEN3, "layer_types": "full_attention"}, "layer_types"),
    "unknown rope_type": ({**LLAMA, "rope_scaling": {"rope_type": "swirl", "factor": 2.0}}, "rope_type 'swirl'"),
    "rope without factor": ({**LLAMA, "rope_scaling": {"rope_type": "linear"}}, "factor"),
    "rope a text": ({**LLAMA, "rope_scaling": "yarn"}, "rope_parameters"),
    "base a text": ({**LLAMA, "rope_theta": "big"}, "'big'"),
    "unknown activation": ({**LLAMA, "hidden_act": "swishy"}, "ffn.activation cannot be the text 'swishy'"),
    "too many experts per token": ({**MIXTRAL, "num_local_experts": 2, "num_experts_per_tok": 5}, "top_k 5"),
    "sparse every zeroth": ({**MIXTRAL, "model_type": "qwen3_moe", "decoder_sparse_step": 0}, "zero"),
    "unknown attention_types": ({"model_type": "gpt_neo", "attention_types": [[["global", "odd"], 12]]}, "'odd'"),
    "rotary beyond the head": ({"model_type": "gptj", "rotary_dim": 1000}, "position.partial"),
    "attends to an encoder": ({"model_type": "gpt2", "add_cross_attention": True}, "attend to an encoder"),
    "no feed-forward": ({"model_type": "gpt2", "n_inner": 0}, "ffn.width cannot be 0"),
    "heads narrower than they turn": ({"model_type": "gpt_neox", "head_dim": 100}, "hidden_size / num_attention_heads"),
    "head_dim of its own": ({"model_type": "helium", "head_dim": 100}, "hidden_size × hidden_size"),
    "text_config a text": ({"model_type": "gemma3", "text_config": "x"}, "text_config"),
    "text_config unknown": ({"model_type": "kimi_k25", "text_config": {"model_type": "nope"}}, "nope"),
    "a method overwritten": ({**LLAMA, "get_text_config": 3}, "cannot read this config"),
    "no model_type": ({"hidden_size": 64}, "no model_type"),
    "model_type a number": ({**LLAMA, "model_type": 3}, "no model_type"),
    "unknown model_type": ({**LLAMA, "model_type": "nope"}, "no model type 'nope'"),
    "auto_map only": ({**LLAMA, "model_type": "nope", "auto_map": {"AutoConfig": "x.Y"}}, "auto_map) is never run"),
    "escapes in model_type": ({**LLAMA, "model_type": "a\n\x1b[31mb"}, r"'a\n\x1b[31mb'"),
    "an encoder": ({"model_type": "bert"}, "'bert' is an encoder"),
    "an encoder-decoder": ({"model_type": "t5"}, "'t5' is an encoder and a decoder that attends to it"),
    "no language model": ({"model_type": "vit"}, "no causal language model of the type 'vit'"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_clear_line(name: str) -> None:
    config, expected = BAD[name]
    with pytest.raises(UnknownModelError) as caught:
        convert(config, "bad")
    message = str(caught.value)
    assert caught.value.exit_code == 1
    assert expected in message
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize("config", [LLAMA, QWEN3, MIXTRAL], ids=lambda config: config["model_type"])
def test_what_the_bad_ones_were_made_of_is_good(config: dict[str, Any]) -> None:
    compile_text(convert(config, "good").text)


def test_the_command_line_says_it_in_a_line(tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    place.write_text(json.dumps(BAD["negative size"][0]))
    for command in ("import", "report", "check"):
        done = archc(command, str(place))
        assert done.code == 1
        assert "Traceback" not in done.err
        assert done.err.count("\n") == 1


UNREADABLE = {
    "empty": b"",
    "no JSON": b"{'model_type': 'llama'}",
    "a list": b"[1, 2]",
    "not UTF-8": b'{"model_type": "\xff\xfe"}',
    "too deep": b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "digits without end": b'{"x": ' + b"9" * 5000 + b"}",
    "larger than any config": b'{"x": "' + b"x" * (17 * 2**20) + b'"}',
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_config(name: str, tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    place.write_bytes(UNREADABLE[name])
    with pytest.raises(IncompleteError) as caught:
        import_spec(str(place))
    assert str(caught.value).isprintable()


def test_ten_megabytes_of_nested_json_are_read(tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    filler = {str(number): {"a": [[number]] * 30} for number in range(40_000)}
    place.write_text(json.dumps({**LLAMA, "filler": filler}))
    assert place.stat().st_size > 10 * 2**20
    compile_text(import_spec(str(place)).text)


def test_code_beside_a_config_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\n")
    config = {**LLAMA, "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Config"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    compile_text(import_spec(str(tmp_path)).text)
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "evil"}))
    with pytest.raises(UnknownModelError, match="never run"):
        import_spec(str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_a_name_cannot_write_into_the_spec(tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    place.write_text(json.dumps({**LLAMA, "_name_or_path": 'x"\nlayers: 7 # '}))
    spec = compile_text(import_spec(str(place)).text).architecture
    assert len(spec.layers) == 2
    assert spec.name == "x-layers- 7"


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-2, 2), max_size=3),
    st.dictionaries(st.sampled_from(["rope_type", "type", "factor", "rope_theta"]), st.integers(-1, 9), max_size=3),
)
KEYS = st.sampled_from(
    [*LLAMA, "head_dim", "rope_theta", "rope_scaling", "layer_types", "hidden_act", "sliding_window", "torch_dtype"]
)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([LLAMA, QWEN3, MIXTRAL]), st.dictionaries(KEYS, VALUES, min_size=1, max_size=3))
def test_nonsense_is_refused_or_a_valid_spec(config: dict[str, Any], changes: dict[str, Any]) -> None:
    refused = None
    try:
        imported = convert({**config, **changes}, "fuzzed")
        compile_text(imported.text)
    except ArchcError as error:
        refused = error
    assert refused is None or (refused.exit_code in (1, 3) and str(refused).isprintable())


GGUF = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
DAMAGED = {
    "empty": b"",
    "something else": b"PK\x03\x04 no GGUF",
    "its first word alone": b"GGUF",
    "a version to come": b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
    "cut short": GGUF + struct.pack("<Q", 20) + b"general.arch",
    "more entries than bytes": b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60) + bytes(64),
    "no architecture": b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(64),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_gguf_file(name: str, tmp_path: Path) -> None:
    place = tmp_path / "model.gguf"
    place.write_bytes(DAMAGED[name])
    with pytest.raises(IncompleteError) as caught:
        import_spec(str(place))
    assert str(place) in str(caught.value)
    assert str(caught.value).isprintable()


def unreachable(*_: object, **__: object) -> None:
    raise urllib.error.URLError("no route")


def test_a_hub_id_without_a_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    with pytest.raises(IncompleteError, match="the hub cannot be reached: no route"):
        import_spec("someone/something")


def test_offline_is_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: pytest.fail("the hub was asked"))
    with pytest.raises(IncompleteError, match="HF_HUB_OFFLINE"):
        import_spec("someone/something")
