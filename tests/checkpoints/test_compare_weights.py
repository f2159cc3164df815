"""Two checkpoints, tensor by tensor: layouts of a GGUF file are named, and mistakes in them found, by name too."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy
import pytest
import torch
from gguf import quants
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.utils import logging

from archc.checkpoints.compare_weights import Comparison, compare_weights
from archc.errors import IncompleteError
from tests.checkpoints import packing
from tests.cli.runner import archc
from tests.tiny import BY_NAME, Tiny, _base, _spec

HEADS, KV_HEADS, WIDTH = 6, 2, 64
Q8_0, Q4_0, F32, F16 = (getattr(gguf.GGMLQuantizationType, name) for name in ("Q8_0", "Q4_0", "F32", "F16"))
# Rows of 64 and 96, of which blocks of 32 are made.
LLAMA = Tiny("llama", "llama", _base(hidden_size=96, intermediate_size=160, num_hidden_layers=2), _spec())
Change = Callable[[str, Tensor], Tensor]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            logging.disable_progress_bar()
            made[name] = tmp_path_factory.mktemp(name)
            (LLAMA if name == "llama" else BY_NAME[name]).save(made[name])
        return made[name]

    return make


def permute(weight: Tensor, heads: int) -> Tensor:
    """llama.cpp, conversion/llama.py, LlamaModel.permute, in its own words."""
    turned = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2)
    return turned.reshape(weight.shape)


def as_llama_cpp(name: str, tensor: Tensor) -> Tensor:
    if "q_proj" in name:
        return permute(tensor, HEADS)
    return permute(tensor, KV_HEADS) if "k_proj" in name else tensor


def convert(
    folder: Path, file: Path, change: Change = as_llama_cpp, kind: Any = F32, architecture: str = "llama"
) -> Path:
    """A GGUF file of a checkpoint, written by the gguf package, as llama.cpp's converter does it."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    for name, tensor in load_file(folder / "model.safetensors").items():
        plain = change(name, tensor).contiguous().numpy()
        stored = kind if tensor.ndim == 2 else F32
        writer.add_tensor(
            str(names.get_name(name, (".weight", ".bias"))), quants.quantize(plain, stored), raw_dtype=stored
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def changed(folder: Path, target: Path, change: Change) -> Path:
    """A copy of a checkpoint with some tensors changed."""
    target.mkdir()
    (target / "config.json").write_bytes((folder / "config.json").read_bytes())
    tensors = {
        name: change(name, tensor).contiguous() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(tensors, target / "model.safetensors")
    return target


def compare(a: Path, b: Path) -> Comparison:
    return compare_weights(a, b, lambda _: None)


def wrong(found: Comparison) -> dict[str, tuple[str, str | None]]:
    """Of every tensor that is not right: its layout, and the fault."""
    return {one.a: (one.layout or one.verdict, one.fault) for one in found.tensors if not one.good}


# ---------------------------------------------------------------- GGUF


@pytest.mark.parametrize("kind", [F32, F16, Q8_0, Q4_0], ids=lambda kind: kind.name)
def test_the_rotary_permutation_is_a_layout(checkpoint: Callable[[str], Path], tmp_path: Path, kind: Any) -> None:
    file = convert(checkpoint("llama"), tmp_path / "model.gguf", kind=kind)
    for found in (compare(checkpoint("llama"), file), compare(file, checkpoint("llama"))):
        assert found.passed
        assert found.known
        layouts = {one.a: one.text for one in found.tensors if one.verdict == "layout"}
        assert set(layouts.values()) == {"rotary permutation of heads of 16 rows"}
        assert sorted(layouts) == [f"model.layers.{n}.self_attn.{x}_proj.weight" for n in (0, 1) for x in "kq"]
        assert len(found.tensors) == len(load_file(checkpoint("llama") / "model.safetensors"))


def twice(name: str, tensor: Tensor) -> Tensor:
    return as_llama_cpp(name, as_llama_cpp(name, tensor))


def of_other_heads(name: str, tensor: Tensor) -> Tensor:
    """llama.cpp#3364: k permuted as if it had another number of heads."""
    return permute(tensor, 4) if "k_proj" in name else as_llama_cpp(name, tensor)


def of_one_layer(name: str, tensor: Tensor) -> Tensor:
    return as_llama_cpp(name, tensor) if ".1." not in name else tensor


def v_too(name: str, tensor: Tensor) -> Tensor:
    return permute(tensor, KV_HEADS) if "v_proj" in name else as_llama_cpp(name, tensor)


QK0, QK1 = ([f"model.layers.{n}.self_attn.{x}_proj.weight" for x in "kq"] for n in (0, 1))
FAULT = "layout.rope_permute"


@pytest.mark.parametrize("kind", [F32, Q8_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda _, tensor: tensor, dict.fromkeys([*QK0, *QK1], ("same", FAULT))),
        (twice, dict.fromkeys([*QK0, *QK1], ("rotary_twice", FAULT))),
        (of_other_heads, dict.fromkeys([QK0[0], QK1[0]], ("rotary", FAULT))),
        (of_one_layer, dict.fromkeys(QK1, ("same", FAULT))),
        (v_too, {f"model.layers.{n}.self_attn.v_proj.weight": ("rotary", FAULT) for n in (0, 1)}),
    ],
    ids=["missing", "twice", "other-heads", "one-layer", "v"],
)
def test_a_rotary_permutation_in_the_wrong_place_is_a_fault(
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    change: Change,
    expected: dict[str, tuple[str, str]],
    kind: Any,
) -> None:
    found = compare(checkpoint("llama"), convert(checkpoint("llama"), tmp_path / "model.gguf", change, kind))
    assert wrong(found) == expected


def gemma_norms(times: int) -> Change:
    """llama.cpp, conversion/gemma.py: every norm weight plus one."""
    return lambda name, tensor: tensor + times if name.endswith("norm.weight") else tensor


@pytest.mark.parametrize(("times", "layout"), [(0, "same"), (1, None), (2, "plus_two")])
def test_a_one_is_folded_into_gemmas_norms_once(
    checkpoint: Callable[[str], Path], tmp_path: Path, times: int, layout: str | None
) -> None:
    folder = checkpoint("gemma2")
    file = convert(folder, tmp_path / "model.gguf", gemma_norms(times), architecture="gemma2")
    found = compare(folder, file)
    norms = {one.a for one in found.tensors if one.a.endswith("norm.weight")}
    assert len(norms) == 13
    assert wrong(found) == ({} if layout is None else dict.fromkeys(norms, (layout, "norm.offset")))


def test_a_one_that_was_added_in_16_bits_is_seen(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """llama.cpp#5810: 4.1250 kept for 4.1406; the numbers are in float32, and wrong in its 9th bit."""

    def rounded(name: str, tensor: Tensor) -> Tensor:
        return (tensor.bfloat16() + 1).float() if name.endswith("norm.weight") else tensor

    folder = checkpoint("gemma2")
    found = compare(folder, convert(folder, tmp_path / "model.gguf", rounded, architecture="gemma2"))
    assert set(wrong(found)) == {one.a for one in found.tensors if one.a.endswith("norm.weight")}


def test_a_layout_of_an_architecture_that_is_not_known_is_named_and_not_judged(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    found = compare(checkpoint("llama"), convert(checkpoint("llama"), tmp_path / "m.gguf", architecture="baichuan"))
    assert found.passed
    assert not found.known
    assert sum(one.verdict == "layout" for one in found.tensors) == 4


def test_a_tied_head_that_is_stored_is_a_copy(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    tied = checkpoint("gemma2")
    untied = changed(tied, tmp_path / "untied", lambda _, tensor: tensor)
    tensors = load_file(untied / "model.safetensors")
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, untied / "model.safetensors")
    found = compare(untied, tied)
    assert found.passed
    assert [one.a for one in found.tensors if one.verdict == "copy"] == ["lm_head.weight"]
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"] + 1}, untied / "model.safetensors")
    assert wrong(compare(untied, tied)) == {"lm_head.weight": ("missing", None)}


def test_experts_stored_one_by_one_are_slices(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """A checkpoint of Mixtral holds its experts one by one, a GGUF file all in one tensor."""
    folder = checkpoint("mixtral")
    tensors = load_file(folder / "model.safetensors")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 3)
    for swapped in (False, True):
        file = tmp_path / f"{swapped}.gguf"
        writer = gguf.GGUFWriter(file, "llama")
        writer.add_block_count(3)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        stacks: dict[str, list[Tensor]] = {}
        for name, tensor in sorted(tensors.items()):
            head, expert, rest = name.partition(".experts.")
            plain = f"{head}{expert.rstrip('.')}{rest[1:]}"
            stacks.setdefault(plain, []).append(as_llama_cpp(name, tensor))
        for name, parts in stacks.items():
            stack = torch.stack(parts[::-1] if swapped else parts) if len(parts) > 1 else parts[0]
            writer.add_tensor(str(names.get_name(name, (".weight",))), numpy.ascontiguousarray(stack.numpy()))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        found = compare(folder, file)
        experts = [one for one in found.tensors if ".experts." in one.a]
        assert len(experts) == 3 * 5 * 3
        assert found.passed != swapped
        assert sum(one.verdict == "different" for one in experts) == (4 * 9 if swapped else 0)


# ---------------------------------------------------------------- two folders


def test_a_checkpoint_is_itself(checkpoint: Callable[[str], Path]) -> None:
    found = compare(checkpoint("llama"), checkpoint("llama"))
    assert found.passed
    assert all(one.verdict == "equal" and one.deviation and one.deviation.max_abs == 0 for one in found.tensors)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_is_no_difference(checkpoint: Callable[[str], Path], tmp_path: Path, dtype: torch.dtype) -> None:
    copy = changed(checkpoint("llama"), tmp_path / "copy", lambda _, tensor: tensor.to(dtype))
    assert compare(checkpoint("llama"), copy).passed


@pytest.mark.parametrize(
    ("settings", "pack"), [(packing.GPTQ, packing.gptq), (packing.FP8, packing.fp8_blocks)], ids=["gptq", "fp8"]
)
def test_quantising_is_no_difference(
    checkpoint: Callable[[str], Path], tmp_path: Path, settings: dict[str, Any], pack: Any
) -> None:
    packed = packing.quantise(checkpoint("llama"), tmp_path / "packed", settings, pack)
    assert compare(checkpoint("llama"), packed).passed
    turned = changed(checkpoint("llama"), tmp_path / "turned", as_llama_cpp)
    packed = packing.quantise(turned, tmp_path / "packed-turned", settings, pack)
    assert wrong(compare(checkpoint("llama"), packed)) == dict.fromkeys([*QK0, *QK1], ("rotary", FAULT))


def one_number(_: str, tensor: Tensor) -> Tensor:
    tensor = tensor.clone()
    tensor.view(-1)[5] *= 1.001
    return tensor


def noise(_: str, tensor: Tensor) -> Tensor:
    return tensor * (1 + 1e-5 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("change", [one_number, noise])
def test_small_differences_are_differences(checkpoint: Callable[[str], Path], tmp_path: Path, change: Change) -> None:
    found = compare(checkpoint("llama"), changed(checkpoint("llama"), tmp_path / "copy", change))
    assert {one.verdict for one in found.tensors} == {"different"}


def halves(tensor: Tensor) -> Tensor:
    return torch.cat(tensor.chunk(2)[::-1])


def only(part: str, change: Callable[[Tensor], Tensor]) -> Change:
    return lambda name, tensor: change(tensor) if part in name else tensor


@pytest.mark.parametrize(
    ("name", "change", "layout", "fault"),
    [
        ("phi3-partial", only("gate_up_proj", halves), "halves_swapped", "layout.gate_up"),
        ("phi3-partial", only("gate_up_proj", lambda x: permute(x, 1)), "interleaved", "layout.gate_up"),
        ("gpt2", only("attn.c_proj.weight", lambda x: x.T), "transposed", "layout.transpose"),
        (
            "gpt2",
            only("c_attn.bias", lambda x: torch.cat([x[60:120], x[:60], x[120:]])),
            "thirds_reordered",
            "layout.fused_qkv",
        ),
        (
            "gpt2",
            only("c_attn.bias", lambda x: x.reshape(3, 5, -1).transpose(0, 1).flatten()),
            "by_head",
            "layout.fused_qkv",
        ),
        ("llama", only("q_proj", lambda x: x.reshape(2, 3, 16, -1).transpose(0, 1).flatten(0, 2)), "heads_tiled", None),
        ("llama", only("embed_tokens", lambda x: x * 96**0.5), "scaled", None),
        ("llama", only("lm_head", lambda x: torch.cat([x, torch.zeros(45, 96)])), "padded", None),
        ("llama", only("norm", lambda x: x + 1), "plus_one", "norm.offset"),
        ("llama", only("k_proj", lambda x: permute(x, KV_HEADS)), "rotary", FAULT),
    ],
)
def test_a_layout_that_only_one_of_two_checkpoints_has_is_named(
    checkpoint: Callable[[str], Path], tmp_path: Path, name: str, change: Change, layout: str, fault: str | None
) -> None:
    folder = checkpoint(name)
    found = compare(folder, changed(folder, tmp_path / "copy", change))
    assert wrong(found)
    assert set(wrong(found).values()) == {(layout, fault)}


# ---------------------------------------------------------------- the command


def test_the_command_says_what_it_found(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = checkpoint("llama")
    right = archc("weights", str(folder), str(convert(folder, tmp_path / "right.gguf")))
    assert right.code == 0, right.err
    assert "2 × model.layers.N.self_attn.q_proj.weight = blk.N.attn_q.weight" in right.out
    assert "layout: rotary permutation of heads of 16 rows" in right.out
    assert "PASS: the same weights, 4 of 21 tensors in a layout of the format" in right.out
    bad = archc("weights", str(folder), str(convert(folder, tmp_path / "bad.gguf", of_one_layer)))
    assert bad.code == 1
    assert "unexpected: as it is, expected the rotary permutation (layout.rope_permute)" in bad.out
    assert "model.layers.1.self_attn.q_proj.weight" in bad.out
    assert "FAIL: 2 of 21 tensors differ" in bad.out


def test_the_document_has_every_tensor(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = checkpoint("llama")
    done = archc("weights", str(folder), str(convert(folder, tmp_path / "m.gguf", twice, Q8_0)), "--json")
    assert done.code == 1
    assert done.json["counts"] == {"equal": 17, "unexpected": 4}
    assert done.json["gguf_architecture"] == "llama"
    one = next(one for one in done.json["tensors"] if one["a"] == QK0[1])
    assert one["b"] == "blk.0.attn_q.weight"
    assert (one["verdict"], one["layout"], one["expected"]) == ("unexpected", "rotary_twice", "rotary")
    assert one["dtypes"] == ["F32", "Q8_0"]
    assert 0 < one["relative_rms"] < 0.01


def test_other_models_and_damaged_files_end_with_a_mend(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = checkpoint("llama")
    file = convert(folder, tmp_path / "whole.gguf")
    for name, content in (("empty", b""), ("text", b"hello" * 20), ("cut", file.read_bytes()[:3000])):
        damaged = tmp_path / f"{name}.gguf"
        damaged.write_bytes(content)
        done = archc("weights", str(folder), str(damaged))
        assert done.code == 3, done.out
        assert "damaged" in done.err
        assert "Traceback" not in done.err
    assert archc("weights", str(folder), str(tmp_path / "none.gguf")).code == 3
    with pytest.raises(IncompleteError, match="no tensor of"):
        compare(checkpoint("gpt2"), folder)
    other = compare(folder, convert(checkpoint("llama"), tmp_path / "other.gguf", noise))
    assert not other.passed


def test_whatever_is_wrong_with_a_file_ends_in_a_line(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """Bytes of the header changed at random: a verdict, or one error with a mend."""
    folder, dice = checkpoint("llama"), random.Random(0)
    whole = convert(folder, tmp_path / "whole.gguf").read_bytes()
    codes = set()
    for _ in range(25):
        damaged = bytearray(whole)
        damaged[dice.randrange(1500)] = dice.randrange(256)
        (tmp_path / "damaged.gguf").write_bytes(damaged)
        done = archc("weights", str(folder), str(tmp_path / "damaged.gguf"))
        codes.add(done.code)
        assert "Traceback" not in done.err, done.err
    assert codes <= {0, 1, 3}
    assert 3 in codes


def test_transformers_reads_the_file_as_it_was_written(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """What these tests take for llama.cpp's layout is what transformers undoes when it loads a GGUF file."""
    from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

    weight = torch.arange(96.0 * 3).reshape(96, 3)
    undone = LlamaTensorProcessor()._reverse_permute_weights(permute(weight, HEADS).numpy(), HEADS, HEADS)
    assert numpy.array_equal(undone, weight.numpy())
