"""Quantised checkpoints are read as they are meant: hand-packed words, and transformers' own arithmetic."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from archc.checkpoints import dequantise_formats
from archc.checkpoints.dequantise import open_checkpoint
from archc.errors import IncompleteError
from tests.checkpoints import packing

EIGHT = list(range(8))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny llama whose widths are multiples of eight, as packed words want them."""
    folder = tmp_path_factory.mktemp("plain")
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=48,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=96,
        tie_word_embeddings=False,
    )
    torch.manual_seed(3)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def make(folder: Path, settings: dict[str, Any], tensors: dict[str, Tensor]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"quantization_config": settings}))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def read(folder: Path, **options: Any) -> dict[str, Tensor]:
    with open_checkpoint(folder, **options).plain() as made:
        return load_file(made / "model.safetensors")


# ---------------------------------------------------------------- by hand


def test_gptq_by_hand(tmp_path: Path) -> None:
    """One word of a column holds inputs 0 to 7, lowest first; zeros are one less on disk, scales are per group."""
    tensors = {
        "a.qweight": torch.tensor([[0x76543210] * 8]).int(),
        "a.qzeros": torch.tensor([[0x33333333]]).int(),
        "a.scales": torch.full((1, 8), 0.5).half(),
    }
    settings = {"quant_method": "gptq", "bits": 4, "group_size": -1}
    expected = [(q - 4) * 0.5 for q in EIGHT]
    found = read(make(tmp_path / "v1", settings, tensors))["a.weight"]
    assert found.tolist() == [expected] * 8
    second = read(make(tmp_path / "v2", settings | {"checkpoint_format": "gptq_v2"}, tensors))["a.weight"]
    assert second.tolist() == [[(q - 3) * 0.5 for q in EIGHT]] * 8


def test_gptq_wraps_a_zero_that_was_stored_one_less(tmp_path: Path) -> None:
    """A zero of 0 is stored as −1, which is 15 in four bits (AutoGPTQ, qlinear_cuda_old.py)."""
    tensors = {
        "a.qweight": torch.tensor([[0x76543210] * 8]).int(),
        "a.qzeros": torch.tensor([[-1]]).int(),
        "a.scales": torch.ones(1, 8).half(),
    }
    found = read(make(tmp_path, {"quant_method": "gptq", "bits": 4, "group_size": 8}, tensors))["a.weight"]
    assert found[0].tolist() == EIGHT


def test_awq_by_hand(tmp_path: Path) -> None:
    """The nibbles of a word are outputs 0, 2, 4, 6, 1, 3, 5, 7, lowest first; zeros are what they are."""
    tensors = {
        "a.qweight": torch.tensor([[0x75316420]] * 4).int(),
        "a.qzeros": torch.tensor([[0x33333333]]).int(),
        "a.scales": torch.full((1, 8), 0.5).half(),
    }
    found = read(make(tmp_path, {"quant_method": "awq", "bits": 4, "group_size": -1}, tensors))["a.weight"]
    assert found.tolist() == [[(q - 3) * 0.5] * 4 for q in EIGHT]


def test_mxfp4_by_hand(tmp_path: Path) -> None:
    """Byte 0x2F: the low nibble is −6, the high one 1; an exponent of 128 doubles both."""
    blocks = torch.zeros(1, 1, 1, 16, dtype=torch.uint8)
    blocks[..., 0] = 0x2F
    tensors = {"a_blocks": blocks, "a_scales": torch.full((1, 1, 1), 128, dtype=torch.uint8)}
    found = read(make(tmp_path, packing.MXFP4, tensors))["a"]
    assert found.shape == (1, 32, 1)
    assert found.flatten()[:3].tolist() == [-12.0, 2.0, 0.0]


def test_fp8_blocks_by_hand(tmp_path: Path) -> None:
    """3 × 3 numbers in blocks of 2 × 2: the last row and the last column have blocks of their own."""
    tensors = {
        "a.weight": torch.ones(3, 3).to(torch.float8_e4m3fn),
        "a.weight_scale_inv": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    }
    found = read(make(tmp_path, {"quant_method": "fp8", "weight_block_size": [2, 2]}, tensors))["a.weight"]
    assert found.tolist() == [[1, 1, 2], [1, 1, 2], [3, 3, 4]]


@pytest.mark.parametrize("kind", [torch.uint8, torch.float8_e8m0fnu])
def test_fp8_with_exponents_as_scales(tmp_path: Path, kind: torch.dtype) -> None:
    """125 stands for 2^−2, whether the byte is called a number or an exponent."""
    scale = torch.tensor([[125]], dtype=torch.uint8).view(kind)
    tensors = {"a.weight": torch.full((2, 2), 8.0).to(torch.float8_e4m3fn), "a.weight_scale_inv": scale}
    found = read(make(tmp_path, {"quant_method": "fp8", "weight_block_size": [2, 2]}, tensors))["a.weight"]
    assert found.tolist() == [[2, 2], [2, 2]]


# ---------------------------------------------------------------- against transformers


def test_fp8_as_transformers_has_it() -> None:
    """transformers' own operation, where it takes the shape: blocks that divide rows and columns."""
    torch.manual_seed(0)
    weight = torch.randn(80, 96).to(torch.float8_e4m3fn)
    scale = torch.rand(2, 3) + 0.1
    theirs = Fp8Dequantize(None)._dequantize_one(weight, scale)
    assert torch.equal(dequantise_formats.scaled(weight, scale, block=(40, 32)), theirs)


def test_mxfp4_as_transformers_has_it() -> None:
    torch.manual_seed(0)
    blocks = torch.randint(0, 256, (3, 10, 2, 16), dtype=torch.uint8)
    scales = torch.randint(110, 130, (3, 10, 2), dtype=torch.uint8)
    theirs = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    assert torch.equal(dequantise_formats.mxfp4(blocks, scales), theirs)


@pytest.mark.parametrize(
    ("settings", "pack"),
    [
        (packing.FP8 | {"weight_block_size": [8, 8]}, "fp8"),
        (packing.MXFP4, "mxfp4"),
    ],
    ids=["fp8", "mxfp4"],
)
def test_transformers_loads_the_same_weights(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], pack: str
) -> None:
    """The whole way: transformers dequantises the checkpoint itself, and has what the plain copy holds, bit by bit."""
    transformers.utils.logging.disable_progress_bar()
    if pack == "fp8":
        monkeypatch.setattr(packing, "BLOCK", (8, 8))  # transformers takes no block that is cut short
        folder = packing.quantise(plain, tmp_path / pack, settings, packing.fp8_blocks)
        chosen: Any = transformers.FineGrainedFP8Config(dequantize=True, weight_block_size=(8, 8))
    else:
        folder = packing.quantise(mixture(tmp_path / "mixture"), tmp_path / pack, settings, packing.mxfp4)
        chosen = transformers.Mxfp4Config(dequantize=True)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=chosen, dtype=torch.float32
    ).state_dict()
    ours = read(folder)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name].float()), name


def mixture(folder: Path) -> Path:
    config = transformers.GptOssConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=3,
        num_experts_per_tok=2,
        sliding_window=8,
        max_position_embeddings=128,
    )
    torch.manual_seed(5)
    transformers.GptOssForCausalLM(config).save_pretrained(folder)
    return folder


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize(
    ("settings", "pack", "worst"),
    [
        (packing.FP8, packing.fp8_blocks, 0.04),
        ({"quant_method": "fbgemm_fp8"}, packing.fp8_rows, 0.04),
        (packing.COMPRESSED, packing.fp8_whole, 0.04),
        (packing.GPTQ, packing.gptq, 0.09),
        (packing.GPTQ, partial(packing.gptq, shuffle=True), 0.09),
        (packing.GPTQ | {"bits": 8}, partial(packing.gptq, bits=8), 0.02),
        (packing.GPTQ | {"bits": 2}, partial(packing.gptq, bits=2), 0.5),
        (packing.GPTQ | {"checkpoint_format": "gptq_v2"}, partial(packing.gptq, shift=0), 0.09),
        (packing.AWQ, packing.awq, 0.09),
    ],
    ids=["fp8", "fbgemm", "compressed", "gptq", "gptq-act-order", "gptq-8", "gptq-2", "gptq-v2", "awq"],
)
def test_what_is_packed_comes_back(
    plain: Path, tmp_path: Path, settings: dict[str, Any], pack: Callable[..., dict[str, Tensor]], worst: float
) -> None:
    """Every tensor under its own name, as far off as rounding to so many bits is; the rest bit by bit."""
    before = load_file(plain / "model.safetensors")
    after = read(packing.quantise(plain, tmp_path / "packed", settings, pack))
    assert after.keys() == before.keys()
    for name, tensor in before.items():
        error = float((after[name] - tensor).norm() / tensor.norm())
        assert error < worst
        assert (error == 0) == ("_proj" not in name)


@pytest.mark.parametrize("wrong", ["nibbles", "zeros", "version"])
def test_a_wrong_reading_is_far_off(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """The twin of the test above: swapped nibbles and zeros that are one off do not pass for rounding."""
    name = "model.layers.0.self_attn.q_proj.weight"
    pack, settings = (packing.awq, packing.AWQ) if wrong == "nibbles" else (packing.gptq, packing.GPTQ)
    if wrong == "nibbles":
        monkeypatch.setattr(dequantise_formats, "_AWQ_ORDER", tuple(range(8)))
    if wrong == "version":
        settings = settings | {"checkpoint_format": "gptq_v2"}
    if wrong == "zeros":
        pack = partial(packing.gptq, shift=0)
    before = load_file(plain / "model.safetensors")[name]
    after = read(packing.quantise(plain, tmp_path / "packed", settings, pack))[name]
    assert float((after - before).norm() / before.norm()) > 0.15


def test_a_family_that_stores_its_matrices_transposed_gets_them_so(tmp_path: Path) -> None:
    tensors = {
        "a.qweight": torch.tensor([[0x76543210] * 8]).int(),
        "a.qzeros": torch.zeros(1, 1).int(),
        "a.scales": torch.arange(8).half()[None],
    }
    folder = make(tmp_path, {"quant_method": "gptq", "bits": 4, "group_size": 8}, tensors)
    turned = read(folder, transposed=lambda name: name == "a.weight")["a.weight"]
    assert torch.equal(turned, read(folder)["a.weight"].T)
    assert not torch.equal(turned, turned.T)


def test_bfloat16_rounds_once(plain: Path, tmp_path: Path) -> None:
    folder = packing.quantise(plain, tmp_path / "packed", packing.AWQ, packing.awq)
    full, half = read(folder), read(folder, dtype="BF16")
    for name, tensor in half.items():
        expected = full[name].bfloat16() if "_proj" in name else full[name]
        assert torch.equal(tensor, expected)


# ---------------------------------------------------------------- the folder


def test_a_plain_checkpoint_is_left_where_it_is(plain: Path) -> None:
    with open_checkpoint(plain).plain() as folder:
        assert folder == plain


def test_the_plain_folder_has_the_tokenizer_and_goes_away(plain: Path, tmp_path: Path) -> None:
    folder = packing.quantise(plain, tmp_path / "packed", packing.AWQ, packing.awq)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    with open_checkpoint(folder).plain() as made:
        assert {file.name for file in made.iterdir()} == {"config.json", "model.safetensors", "tokenizer.json"}
        assert "quantization_config" not in json.loads((made / "config.json").read_text())
    assert not made.exists()


def test_names_and_shapes_are_known_before_anything_is_written(plain: Path, tmp_path: Path) -> None:
    found = open_checkpoint(packing.quantise(plain, tmp_path / "packed", packing.GPTQ, packing.gptq)).tensors
    expected = load_file(plain / "model.safetensors")
    assert {name: tensor.shape for name, tensor in found.items()} == {n: tuple(t.shape) for n, t in expected.items()}


def test_a_disk_that_is_too_small_is_said_before_it_is_full(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = packing.quantise(plain, tmp_path / "packed", packing.AWQ, packing.awq)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(IncompleteError, match="has 1,000 left") as caught, open_checkpoint(folder).plain():
        pass
    assert "TMPDIR" in caught.value.mend


# ---------------------------------------------------------------- refusals

GOOD = {
    "a.qweight": torch.zeros(1, 8).int(),
    "a.qzeros": torch.zeros(1, 1).int(),
    "a.scales": torch.ones(1, 8).half(),
}
FP8_ALONE = {"a.weight": torch.ones(4, 4).to(torch.float8_e4m3fn)}
SCALED = FP8_ALONE | {"a.weight_scale_inv": torch.ones(2, 2)}
W4 = {"weights": {"type": "int", "num_bits": 4}}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 8}
REFUSED = [
    *[({"quant_method": name}, {}, f"quantised by '{name}'.*mxfp4") for name in ("hqq", "eetq", "quanto", "torchao")],
    ({"load_in_4bit": True}, {}, "quantised by 'bitsandbytes'"),
    ({"quant_method": ["fp8"]}, {}, "quantised by"),
    ({"bits": 4}, {}, "quantised by 'unnamed'"),
    ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": W4}}, {}, "int4"),
    (packing.COMPRESSED | {"sparsity_config": {"format": "sparse-24-bitmask"}}, {}, "sparse"),
    ({"quant_method": "fp8"}, FP8_ALONE, "a.weight .*has no _scale_inv beside it"),
    ({"quant_method": "fp8"}, SCALED, "fits no"),
    ({"quant_method": "fp8", "weight_block_size": [3, 3]}, {**SCALED, "a.weight": torch.ones(4, 4)}, "no fp8"),
    ({"quant_method": "fp8", "weight_block_size": "all"}, SCALED, "its blocks are 'all'"),
    (GPTQ | {"bits": 3}, GOOD, "3 bits"),
    (GPTQ | {"bits": [4]}, GOOD, "bits"),
    (GPTQ | {"group_size": 0}, GOOD, "group_size is 0"),
    (GPTQ | {"group_size": 4}, GOOD, r"does not fit its scales \[1, 8\]"),
    (GPTQ | {"checkpoint_format": "marlin"}, GOOD, "'marlin'"),
    (GPTQ, {**GOOD, "a.weight": torch.ones(8, 8)}, "both plain and quantised"),
    (GPTQ, {"a.qweight": GOOD["a.qweight"]}, "without a.scales"),
    (GPTQ, {**GOOD, "a.g_idx": torch.zeros(7).int()}, "not one group"),
    (GPTQ, {**GOOD, "a.qweight": torch.zeros(1, 8)}, "not packed in words"),
    (packing.AWQ | {"version": "gemv"}, GOOD, "'gemv'"),
    (packing.MXFP4, {"a_blocks": torch.zeros(1, 2, 1, 8).byte(), "a_scales": torch.zeros(1, 2, 1).byte()}, "16"),
    (packing.MXFP4, {"a_blocks": torch.zeros(1, 2, 1, 16).byte()}, "without a_scales"),
]


@pytest.mark.parametrize(("settings", "tensors", "message"), REFUSED)
def test_what_is_not_understood_is_refused_by_name(
    tmp_path: Path, settings: dict[str, Any], tensors: dict[str, Tensor], message: str
) -> None:
    folder = make(tmp_path, settings, tensors or {"norm.weight": torch.ones(4)})
    with pytest.raises(IncompleteError, match=message) as caught:
        open_checkpoint(folder)
    assert caught.value.mend


def test_a_group_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path, GPTQ, {**GOOD, "a.g_idx": torch.full((8,), 5).int()})
    with pytest.raises(IncompleteError, match="g_idx names groups beyond"), open_checkpoint(folder).plain():
        pass


def test_a_config_that_says_null_is_plain(plain: Path, tmp_path: Path) -> None:
    tensors = {"norm.weight": torch.ones(4)}
    folder = make(tmp_path, {}, tensors)
    (folder / "config.json").write_text('{"quantization_config": null}')
    assert open_checkpoint(folder).method == ""
