"""What a checkpoint, a text or a small model can do to the gate: a clear refusal, or something said to be blind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from archc.architecture import compile_text
from archc.errors import IncompleteError
from archc.validation.gate import GateResult, run_gate
from archc.validation.reference import Reference
from tests.tiny import BY_NAME, Tiny, _base, _spec

Checkpoint = Callable[[str], Path]
WORDS = "the ferry left the harbour at noon"


def gate(tiny: Tiny, folder: Path, **more: Any) -> GateResult:
    return run_gate(compile_text(tiny.text(), tiny.name), folder, more.pop("step", lambda _step: None), **more)


def changed(folder: Path, to: Path, **config: object) -> Path:
    """A copy of a checkpoint with another config.json."""
    shutil.copytree(folder, to)
    file = to / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    return to


@pytest.mark.parametrize("layers", [2, 0, -1])
def test_a_config_with_fewer_layers_than_the_weights_is_no_reference(
    layers: int, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = changed(checkpoint("llama-default"), tmp_path / "fewer", num_hidden_layers=layers)
    first = f"model.layers.{max(layers, 0)}.input_layernorm.weight"
    with pytest.raises(IncompleteError, match=f"no place for {first} and {9 * (3 - max(layers, 0)) - 1} more"):
        gate(BY_NAME["llama-default"], folder)


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation", "_experts_implementation_internal"])
def test_a_config_may_choose_no_code(key: str, checkpoint: Checkpoint, tmp_path: Path) -> None:
    """transformers would fetch kernels by such a name, and run them."""
    folder = changed(checkpoint("llama-default"), tmp_path / "chosen", **{key: "somebody/kernels"})
    with pytest.raises(IncompleteError, match="may fetch and run code"):
        Reference(folder)


def test_code_beside_a_checkpoint_is_not_run(checkpoint: Checkpoint, tmp_path: Path) -> None:
    names = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    folder = changed(checkpoint("llama-default"), tmp_path / "custom", auto_map=names)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    Reference(folder)
    assert not (tmp_path / "ran").exists()


def test_an_old_buffer_is_no_reason_to_refuse(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """gpt2's own checkpoint stores the causal mask of every layer, which no version has read for years."""
    from safetensors.torch import load_file, save_file

    folder = changed(checkpoint("gpt2"), tmp_path / "old")
    weights = load_file(folder / "model.safetensors")
    weights["transformer.h.0.attn.bias"] = weights["transformer.wte.weight"][:1, :1].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    result = gate(BY_NAME["gpt2"], folder)
    assert result.passed
    assert result.manifest.unread == ("transformer.h.0.attn.bias",)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("llama-default", "num_attention_heads", 0),
        ("llama-default", "num_attention_heads", -6),
        ("llama-default", "num_key_value_heads", 0),
        ("llama-default", "hidden_size", -72),
        ("llama-default", "head_dim", 0),
        ("llama-default", "vocab_size", -1),
        ("llama-default", "pad_token_id", 99_999),
        ("llama-default", "rope_parameters", 7),
        ("mistral-window", "sliding_window", 0),
        ("mistral-window", "sliding_window", -3),
        ("qwen3_moe", "num_experts_per_tok", -1),
        ("qwen3_moe", "num_experts_per_tok", 9),
    ],
)
def test_nonsense_in_a_config_is_the_checkpoint_s_fault(
    name: str, key: str, value: object, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = changed(checkpoint(name), tmp_path / "nonsense", **{key: value})
    with pytest.raises(IncompleteError, match=r"transformers cannot (load|run) .*; check its config.json"):
        gate(BY_NAME[name], folder)


def test_a_window_of_one_is_held_against_the_full_pass(tmp_path: Path) -> None:
    """Of a window w transformers keeps w - 1 positions, and for w = 1 all of them: it cannot decode then."""
    attention = "{heads: 6, kv_heads: 2, head_dim: 16, window: %d}"
    tiny = Tiny("one", "mistral", _base(sliding_window=1), _spec(attention=attention % 1))
    tiny.save(tmp_path)
    result = gate(tiny, tmp_path)
    assert result.passed
    assert result.steps_against_whole
    assert any(probe.probe.chunks is not None for probe in result.probes)
    wrong = Tiny("two", "mistral", {}, _spec(attention=attention % 2))
    other = compile_text(wrong.text().replace("hidden_size: None", "hidden_size: 72"), "two")
    assert not run_gate(other, tmp_path, lambda _step: None).passed
    held = Reference(tmp_path).cached(20)
    assert held is not None
    assert held.elements == 20 * 3 * 2 * 2 * 16


def learned(positions: int) -> Tiny:
    tiny = BY_NAME["gpt2"]
    text = tiny.text().replace("context: 96", f"context: {positions}")
    config = tiny.config | {"n_positions": positions}

    class Short(Tiny):
        def text(self) -> str:
            return text

    return Short("gpt2", "gpt2", config, tiny.spec)


@pytest.mark.parametrize("positions", [1, 2, 3, 7, 20, 40, 50])
def test_a_short_learned_table_still_gets_its_probes(positions: int, tmp_path: Path) -> None:
    tiny = learned(positions)
    tiny.save(tmp_path)
    result = gate(tiny, tmp_path)
    assert result.passed
    assert max(probe.probe.input_ids.shape[1] for probe in result.probes) == min(positions, 64)
    chunks = [probe.probe.chunks for probe in result.probes if probe.probe.chunks]
    padded = [probe.probe for probe in result.probes if not bool(probe.probe.real.all())]
    if positions == 1:
        assert (chunks, padded) == ([], [])
        assert {one.field for one in result.blind} == {"cache", "padding"}
    else:
        assert len(chunks) == len(padded) == 1
        assert chunks[0] is not None
        assert min(positions - 7, 2) < sum(chunks[0]) <= positions
        assert len(chunks[0]) > 1
        assert result.blind == []
    wrong = run_gate(compile_text(tiny.text(), "m", ["norm.eps=1.0e-2"]), tmp_path, lambda _step: None)
    assert not wrong.passed


@pytest.fixture
def reading(checkpoint: Checkpoint, tmp_path: Path) -> Callable[[int], Path]:
    """A checkpoint with a tokenizer, whose last word has the given id."""

    def make(last: int) -> Path:
        folder = changed(checkpoint("llama-default"), tmp_path / "reading")
        words = WORDS.split()
        vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))} | {words[-1]: last}
        tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=words[0]))
        tokenizer.pre_tokenizer = Whitespace()
        tokenizer.save(str(folder / "tokenizer.json"))
        return folder

    return make


@pytest.mark.parametrize(
    ("content", "last", "said"),
    [
        (WORDS.encode(), 211, "makes a token 211, and the vocabulary has 211"),
        (WORDS.encode() + b"\xff", 210, "byte 34 is not UTF-8"),
        (b"noon", 210, "too short"),
        (b"", 210, "too short"),
        (None, 210, "No such file"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_before_the_long_run(
    content: bytes | None, last: int, said: str, reading: Callable[[int], Path], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    if content is not None:
        text.write_bytes(content)
    steps: list[str] = []
    with pytest.raises(IncompleteError, match=said):
        gate(BY_NAME["llama-default"], reading(last), text=text, step=steps.append)
    assert steps == ["checkpoint headers"]


def test_a_text_that_can_be_read_has_a_loss(reading: Callable[[int], Path], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(WORDS)
    result = gate(BY_NAME["llama-default"], reading(210), text=text)
    assert result.text is not None
    assert (result.text.tokens, result.text.name) == (7, "text.txt")
    assert result.text.change == pytest.approx(0, abs=1e-5)
