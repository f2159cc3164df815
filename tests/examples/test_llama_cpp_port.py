"""llama.cpp as a port: on a GGUF file in float32 it passes; on one without the rotary permutation it does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch
from gguf import quants
from safetensors.torch import load_file, save_file
from torch import Tensor

from archc.validation.parity import ProbeResult, judge, measure
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from tests.tiny import Tiny, _base, _spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama_cpp_port"
HEADS, KV_HEADS, HEAD_DIM, WIDTH, FFN = 6, 2, 32, 96, 160
LLAMA = Tiny(
    "llama",
    "llama",
    _base(hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=2, head_dim=HEAD_DIM),
    _spec(),
)
Q8_0, F32 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.F32

needs_llama_cpp = pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None, reason="llama-cpp-python is not installed"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    LLAMA.save(folder)
    return folder


def permuted(name: str, tensor: Tensor) -> Tensor:
    """llama.cpp, conversion/llama.py, LlamaModel.permute."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return tensor
    heads = HEADS if "q_proj" in name else KV_HEADS
    return tensor.reshape(heads, 2, HEAD_DIM // 2, -1).swapaxes(1, 2).reshape(tensor.shape)


def convert(folder: Path, file: Path, change: Callable[[str, Tensor], Tensor] = permuted, kind: object = F32) -> Path:
    """A GGUF file that llama.cpp loads, without a tokenizer."""
    config = LLAMA.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(2)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, tensor in load_file(folder / "model.safetensors").items():
        stored = kind if tensor.ndim == 2 else F32
        assert isinstance(stored, gguf.GGMLQuantizationType)
        packed = quants.quantize(change(name, tensor).contiguous().numpy(), stored)
        writer.add_tensor(str(names.get_name(name, (".weight",))), packed, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def probes() -> list[Probe]:
    ids = torch.randint(3, 211, (3, 24), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(3, 24, dtype=torch.long)
    mask[0, :10] = mask[1, :3] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return [
        Probe("whole", "", ids[:1]),
        Probe("padded", "", ids, positions, mask),
        Probe("cache", "", ids[:1], chunks=(9, 1, 1, 6, 7)),
        Probe("gaps", "", ids[:1, :3], torch.tensor([[0, 5, 40]]), torch.ones(1, 3, dtype=torch.long)),
    ]


def run(script: str, *arguments: Path) -> None:
    command = [sys.executable, str(EXAMPLE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def judged(checkpoint: Path, file: Path, folder: Path) -> dict[str, ProbeResult]:
    """What the gate says of each probe that llama.cpp answered, by the files that the gate exchanges with a command."""
    given = {
        f"{probe.name}/{field}": value.clone()
        for probe in probes()
        for field, value in {
            "input_ids": probe.input_ids,
            "position_ids": probe.position_ids,
            "attention_mask": probe.attention_mask,
            "chunks": None if probe.chunks is None else torch.tensor(probe.chunks),
        }.items()
        if value is not None
    }
    save_file(given, folder / "probes.safetensors")
    run("port.py", file, folder / "probes.safetensors", folder / "out.safetensors")
    out = load_file(folder / "out.safetensors")
    reference = Reference(checkpoint)
    answered = [probe for probe in probes() if f"{probe.name}/logits" in out]
    baselines, _ = measure(reference, answered, lambda _: None)
    return {one.probe.name: judge(reference, one, out[f"{one.probe.name}/logits"]) for one in baselines}


@needs_llama_cpp
def test_llama_cpp_in_float32_passes(checkpoint: Path, tmp_path: Path) -> None:
    """And it leaves out what it cannot do: positions with gaps."""
    found = judged(checkpoint, convert(checkpoint, tmp_path / "model.gguf"), tmp_path)
    assert list(found) == ["whole", "padded", "cache"]
    assert all(one.passed for one in found.values()), [one.times_floor for one in found.values()]


@needs_llama_cpp
def test_without_the_rotary_permutation_it_fails(checkpoint: Path, tmp_path: Path) -> None:
    found = judged(checkpoint, convert(checkpoint, tmp_path / "model.gguf", lambda _, tensor: tensor), tmp_path)
    assert not any(one.passed for one in found.values())


@needs_llama_cpp
def test_a_quantised_file_passes_when_it_is_spelled_in_float32(checkpoint: Path, tmp_path: Path) -> None:
    """Q8_0 weights are far from the checkpoint's; held against a checkpoint of the same weights, they agree."""
    packed = convert(checkpoint, tmp_path / "packed.gguf", kind=Q8_0)
    run("to_float32.py", packed, tmp_path / "plain.gguf")
    assert not any(one.passed for one in judged(checkpoint, tmp_path / "plain.gguf", tmp_path).values())
    twin = tmp_path / "twin"
    twin.mkdir()
    (twin / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    rounded = {
        name: torch.from_numpy(quants.dequantize(quants.quantize(tensor.numpy(), Q8_0), Q8_0))
        if tensor.ndim == 2
        else tensor
        for name, tensor in load_file(checkpoint / "model.safetensors").items()
    }
    save_file(rounded, twin / "model.safetensors")
    assert all(one.passed for one in judged(twin, tmp_path / "plain.gguf", tmp_path).values())
    assert not any(one.passed for one in judged(twin, packed, tmp_path).values()), "activations in 8 bits"


def test_the_copy_in_float32_holds_the_same(checkpoint: Path, tmp_path: Path) -> None:
    packed = convert(checkpoint, tmp_path / "packed.gguf", kind=Q8_0)
    run("to_float32.py", packed, tmp_path / "plain.gguf")
    before, after = gguf.GGUFReader(packed), gguf.GGUFReader(tmp_path / "plain.gguf")
    assert {tensor.tensor_type for tensor in after.tensors} == {F32}
    assert before.fields.keys() - {"general.file_type"} == after.fields.keys() - {"general.file_type"}
    for one, other in zip(before.tensors, after.tensors, strict=True):
        plain = torch.from_numpy(quants.dequantize(one.data, one.tensor_type).copy())
        assert torch.equal(plain, torch.from_numpy(other.data.copy()))
