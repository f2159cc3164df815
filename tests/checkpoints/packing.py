"""Packs plain checkpoints into quantised ones, value by value, as the formats are documented.

Slow and plain on purpose: loops over integers in Python, so that they share nothing with what unpacks them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
GROUP = 8
BLOCK = (40, 32)  # divides neither rows nor columns of the tiny checkpoints


def word(values: list[int], bits: int) -> int:
    """Values side by side in 32 bits, the first in the lowest; as a signed number, as safetensors has it."""
    packed = sum(value << (bits * place) for place, value in enumerate(values))
    return packed - (1 << 32) if packed >= 1 << 31 else packed


def along_rows(q: Tensor, bits: int) -> Tensor:
    """[in, out] integers → [in / values per word, out]: GPTQ's weights."""
    count = 32 // bits
    rows = q.T.tolist()
    words = [[word(row[start : start + count], bits) for start in range(0, len(row), count)] for row in rows]
    return torch.tensor(words, dtype=torch.int32).T.contiguous()


def along_columns(q: Tensor, bits: int, order: tuple[int, ...] | None = None) -> Tensor:
    """[in, out] integers → [in, out / values per word]: GPTQ's zeros, and all of AWQ in its own order."""
    count = 32 // bits
    order = order or tuple(range(count))
    words = [
        [word([row[start + place] for place in order], bits) for start in range(0, len(row), count)]
        for row in q.tolist()
    ]
    return torch.tensor(words, dtype=torch.int32)


def grouped(weight: Tensor, bits: int, group: int = GROUP) -> tuple[Tensor, Tensor, Tensor]:
    """[out, in] → integers [in, out], and zeros and scales [groups, out], rounded to nearest; zeros from 1."""
    pieces = torch.split(weight.T, group)
    low = torch.stack([piece.amin(0) for piece in pieces])
    high = torch.stack([piece.amax(0) for piece in pieces])
    scales = ((high - low) / (2**bits - 1)).half()
    zeros = (-low / scales.float()).round().clamp(1, 2**bits - 1).int()
    each = torch.arange(weight.shape[1]) // group
    q = (weight.T / scales.float()[each]).round().int() + zeros[each]
    return q.clamp(0, 2**bits - 1), zeros, scales


def gptq(name: str, weight: Tensor, bits: int = 4, shift: int = 1, shuffle: bool = False) -> dict[str, Tensor]:
    """The four tensors of a GPTQ layer; with `shuffle` its inputs belong to groups in no order, as act-order has it."""
    stem = name.removesuffix(".weight")
    inputs = weight.shape[1]
    order = torch.randperm(inputs, generator=torch.Generator().manual_seed(1)) if shuffle else torch.arange(inputs)
    q, zeros, scales = grouped(weight[:, order], bits)
    back = torch.argsort(order)
    return {
        f"{stem}.qweight": along_rows(q[back], bits),
        f"{stem}.qzeros": along_columns(zeros - shift, bits),
        f"{stem}.scales": scales,
        f"{stem}.g_idx": (back // GROUP).int(),
    }


def awq(name: str, weight: Tensor) -> dict[str, Tensor]:
    stem = name.removesuffix(".weight")
    q, zeros, scales = grouped(weight, 4)
    return {
        f"{stem}.qweight": along_columns(q, 4, AWQ_ORDER),
        f"{stem}.qzeros": along_columns(zeros, 4, AWQ_ORDER),
        f"{stem}.scales": scales,
    }


def fp8_blocks(name: str, weight: Tensor) -> dict[str, Tensor]:
    """DeepSeek's fp8: a factor for every block, of which the last in each direction may be smaller."""
    blocks = [torch.split(row, BLOCK[1], dim=1) for row in torch.split(weight, BLOCK[0])]
    scale = torch.tensor([[float(block.abs().max()) / 448 for block in row] for row in blocks])
    packed = [[block / factor for block, factor in zip(*pair, strict=True)] for pair in zip(blocks, scale, strict=True)]
    stored = torch.cat([torch.cat(row, dim=1) for row in packed]).to(torch.float8_e4m3fn)
    return {name: stored, f"{name}_scale_inv": scale, name.replace("weight", "input_scale"): torch.ones(1)}


def fp8_rows(name: str, weight: Tensor) -> dict[str, Tensor]:
    """fbgemm's and compressed-tensors' fp8 with a factor for every row."""
    scale = weight.abs().amax(1, keepdim=True) / 448
    return {name: (weight / scale).to(torch.float8_e4m3fn), f"{name}_scale": scale}


def fp8_whole(name: str, weight: Tensor) -> dict[str, Tensor]:
    """compressed-tensors' fp8 with one factor."""
    scale = weight.abs().max().reshape(1) / 448
    return {name: (weight / scale).to(torch.float8_e4m3fn), f"{name}_scale": scale.bfloat16()}


E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def mxfp4(name: str, weight: Tensor) -> dict[str, Tensor]:
    """[experts, in, out] → bytes of two values for every output, in blocks of 32 inputs, and their exponents."""
    values = weight.transpose(1, 2).reshape(weight.shape[0], weight.shape[2], -1, 32)
    power = torch.floor(torch.log2(values.abs().amax(-1).clamp(min=1e-30))) - 2
    small = values / torch.exp2(power).unsqueeze(-1)
    nearest = (small.abs().unsqueeze(-1) - torch.tensor(E2M1)).abs().argmin(-1) + 8 * (small < 0)
    packed = nearest[..., 0::2] + 16 * nearest[..., 1::2]
    return {f"{name}_blocks": packed.to(torch.uint8), f"{name}_scales": (power + 127).to(torch.uint8)}


def quantise(source: Path, target: Path, settings: dict[str, object], pack: Callable[..., dict[str, Tensor]]) -> Path:
    """A quantised copy of a plain checkpoint: every matrix of its layers packed, the rest as it is."""
    target.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | {"quantization_config": settings}))
    stored: dict[str, Tensor] = {}
    for name, tensor in load_file(source / "model.safetensors").items():
        linear = "layers." in name and name.endswith("_proj.weight")
        stacked = pack is mxfp4 and name.endswith(("gate_up_proj", "down_proj"))
        packs = stacked if pack is mxfp4 else linear
        stored |= pack(name, tensor.float()) if packs else {name: tensor}
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, target / "model.safetensors")
    return target


FP8 = {"quant_method": "fp8", "weight_block_size": list(BLOCK)}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {"group_0": {"weights": {"type": "float", "num_bits": 8, "strategy": "tensor"}}},
}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}
MXFP4 = {"quant_method": "mxfp4"}
