"""How quantised tensors become plain ones: one entry per format, with the source of its formula.

A format says, from headers alone, which plain tensors it makes of which stored ones (`Recipe`), and computes each of
them in float32. What it cannot make sense of is refused by name: a guess here would be a wrong reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from archc.checkpoints.headers import StoredTensor
from archc.errors import IncompleteError

UNQUANTISED = "use the unquantised checkpoint"
Stored = Mapping[str, StoredTensor]
Settings = Mapping[str, Any]
"""The `quantization_config` of a config.json."""

_WORD_BITS = 32
_FP8 = ("F8_E4M3", "F8_E5M2")
# OCP Microscaling Formats 1.0, 5.3.3: the values of FP4 E2M1, sign bit last.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
_MXFP4_BYTES = 16
# Which column of its eight a nibble of a word holds, lowest nibble first.
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A plain tensor: its name and shape, and the formula that makes it, in float32, of the stored ones, in order."""

    name: str
    shape: tuple[int, ...]
    sources: tuple[StoredTensor, ...]
    formula: Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Format:
    """One `quant_method`: its recipes, and the endings of what it stores for activations and caches.

    Those have no part in the weights, and are left out: the reference computes with unquantised activations.
    """

    recipes: Callable[[Stored, Settings, Callable[[str], bool]], Iterator[Recipe]]
    left_out: tuple[str, ...] = field(default=())


def _scaled(suffix: str) -> Callable[[Stored, Settings, Callable[[str], bool]], Iterator[Recipe]]:
    """Recipes for fp8 weights beside `<name><suffix>`: a factor for the whole, for rows or columns, or for blocks."""

    def recipes(stored: Stored, settings: Settings, _transposed: Callable[[str], bool]) -> Iterator[Recipe]:
        block = _block(settings)
        for name, weight in stored.items():
            scale = stored.get(name + suffix)
            if scale is None and weight.dtype in _FP8:
                raise _refused(weight, f"has no {suffix} beside it")
            if scale is None:
                continue
            if weight.dtype not in _FP8:
                raise _refused(weight, "is scaled, and no fp8")
            if not _broadcasts(scale.shape, weight.shape) and not _tiles(scale.shape, weight.shape, block):
                raise _refused(scale, f"fits no {list(weight.shape)} in blocks of {block and list(block)}")
            yield Recipe(name, weight.shape, (weight, scale), partial(scaled, block=block))

    return recipes


def _block(settings: Settings) -> tuple[int, int] | None:
    stated = settings.get("weight_block_size")
    for group in _groups(settings):
        stated = _section(group, "weights").get("block_structure") or stated
    if stated is None:
        return None
    if not (isinstance(stated, list) and len(stated) == 2 and all(type(n) is int and n > 0 for n in stated)):
        raise IncompleteError(f"its blocks are {stated!r:.60}", UNQUANTISED)
    return (stated[0], stated[1])


def _broadcasts(scale: tuple[int, ...], weight: tuple[int, ...]) -> bool:
    if set(scale) <= {1}:
        return True
    return len(scale) == len(weight) and all(s in {1, w} for s, w in zip(scale, weight, strict=True))


def _tiles(scale: tuple[int, ...], weight: tuple[int, ...], block: tuple[int, int] | None) -> bool:
    """Whether there is a factor for every block, of which the last in each direction may be cut short."""
    if block is None or len(weight) < 2:
        return False
    grid = (-(-weight[-2] // block[0]), -(-weight[-1] // block[1]))
    return scale == (*weight[:-2], *grid)


def scaled(weight: Tensor, scale: Tensor, *, block: tuple[int, int] | None) -> Tensor:
    """weight × scale, in fp32 (DeepSeek-V3, inference/kernel.py, weight_dequant; transformers, Fp8Dequantize).

    A scale in eight bits is an exponent, 2^(byte − 127).
    """
    factor = (scale.float() - 127).exp2() if scale.dtype == torch.uint8 else scale.float()
    if not _broadcasts(tuple(scale.shape), tuple(weight.shape)):
        assert block is not None
        for axis in (-2, -1):
            size = weight.shape[axis]
            factor = factor.repeat_interleave(min(block[axis], size), dim=axis).narrow(axis, 0, size)
    elif factor.numel() == 1:
        factor = factor.reshape(())
    return weight.float() * factor


def _compressed(stored: Stored, settings: Settings, transposed: Callable[[str], bool]) -> Iterator[Recipe]:
    """compressed-tensors, as far as it is fp8 and scaled."""
    sparse = _section(settings, "sparsity_config").get("format") or "dense"
    if sparse != "dense":
        raise IncompleteError(f"its weights are sparse ({sparse!r:.40})", UNQUANTISED)
    for group in _groups(settings):
        kind = group.get("format") or settings.get("format")
        weights = _section(group, "weights")
        if str(kind) not in {"float-quantized", "naive-quantized"} or weights.get("type") != "float":
            bits = f"{weights.get('type')}{weights.get('num_bits')}"
            raise IncompleteError(
                f"of compressed-tensors archc reads fp8 alone, and not {kind!r:.40} ({bits:.20})", UNQUANTISED
            )
    yield from _scaled("_scale")(stored, settings, transposed)


def _groups(settings: Settings) -> list[Settings]:
    groups = _section(settings, "config_groups")
    return [_section(groups, name) for name in groups]


def _section(settings: Settings, key: str) -> Settings:
    found = settings.get(key)
    return found if isinstance(found, dict) else {}


def _mxfp4(stored: Stored, _settings: Settings, _transposed: Callable[[str], bool]) -> Iterator[Recipe]:
    for name, blocks in stored.items():
        plain = name.removesuffix("_blocks")
        if plain == name:
            continue
        scales = _beside(stored, blocks, f"{plain}_scales")
        experts, rows, groups, packed = blocks.shape if len(blocks.shape) == 4 else (0, 0, 0, 0)
        if packed != _MXFP4_BYTES or scales.shape != blocks.shape[:-1] or {blocks.dtype, scales.dtype} != {"U8"}:
            raise _refused(blocks, "is not [experts, rows, blocks, 16] bytes with an exponent for each block")
        yield Recipe(plain, (experts, groups * 2 * packed, rows), (blocks, scales), mxfp4)


def mxfp4(blocks: Tensor, scales: Tensor) -> Tensor:
    """E2M1 values, the low nibble first, times 2^(byte − 127): [experts, out, in] as stored, [experts, in, out] plain.

    transformers 5.24, integrations/mxfp4.py, _convert_moe_packed_tensors.
    """
    table = torch.tensor(_E2M1)
    experts, rows, groups, packed = blocks.shape
    plain = torch.empty(experts, groups * 2 * packed, rows)
    for block, scale, out in zip(
        blocks, scales, plain, strict=True
    ):  # an expert at a time: indices are eight times as large
        nibbles = torch.stack([block & 15, block >> 4], dim=-1).reshape(rows, groups, 2 * packed)
        out.copy_(torch.ldexp(table[nibbles.int()], scale.int().unsqueeze(-1) - 127).reshape(rows, -1).T)
    return plain


def _gptq(stored: Stored, settings: Settings, transposed: Callable[[str], bool]) -> Iterator[Recipe]:
    kind = str(settings.get("checkpoint_format") or settings.get("format") or "gptq")
    if kind not in {"gptq", "gptq_v2"} or settings.get("is_marlin_format"):
        raise IncompleteError(f"archc reads the GPTQ formats gptq and gptq_v2, and not {kind!r:.40}", UNQUANTISED)
    bits = _bits(settings, (2, 4, 8))
    per_word = _WORD_BITS // bits
    for stem, weight in _packed(stored):
        scales, zeros = _beside(stored, weight, f"{stem}.scales"), _beside(stored, weight, f"{stem}.qzeros")
        rows, columns = (weight.shape[0] * per_word, weight.shape[1]) if len(weight.shape) == 2 else (0, 0)
        size = _group_size(settings, rows)
        _require_packing(weight, scales, zeros, (rows, columns), per_word, size)
        order = stored.get(f"{stem}.g_idx")
        if order is not None and order.shape != (rows,):
            raise _refused(order, f"is not one group for each of {rows} rows")
        plain = f"{stem}.weight"
        formula = partial(gptq, bits=bits, size=size, shift=int(kind == "gptq"), turned=not transposed(plain))
        shape = (rows, columns) if transposed(plain) else (columns, rows)
        yield Recipe(plain, shape, (weight, scales, zeros, *([order] if order else [])), formula)


def gptq(
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor,
    order: Tensor | None = None,
    *,
    bits: int,
    size: int,
    shift: int,
    turned: bool,
) -> Tensor:
    """(q − zero) × scale, packed along the input in words of 32 bits, the lowest bits first; zeros along the output.

    The first format stores zero − 1 (`shift` 1), and wraps: AutoGPTQ 0.7, nn_modules/qlinear/qlinear_cuda_old.py.
    The second stores zero itself: GPTQModel, nn_modules/qlinear/__init__.py. `order` (g_idx) gives each input's group.
    """
    q = _words(weight.T, bits, range(_WORD_BITS // bits)).T
    zero = (_words(zeros, bits, range(_WORD_BITS // bits)) + shift) & (2**bits - 1)
    plain = _grouped(q, zero, scales, torch.arange(len(q)) // size if order is None else order.long())
    return plain.T.contiguous() if turned else plain


def _awq(stored: Stored, settings: Settings, transposed: Callable[[str], bool]) -> Iterator[Recipe]:
    kind = str(settings.get("version") or settings.get("format") or "gemm").lower()
    if kind != "gemm":
        raise IncompleteError(f"archc reads the AWQ format gemm, and not {kind!r:.40}", UNQUANTISED)
    _bits(settings, (4,))
    per_word = len(_AWQ_ORDER)
    for stem, weight in _packed(stored):
        scales, zeros = _beside(stored, weight, f"{stem}.scales"), _beside(stored, weight, f"{stem}.qzeros")
        rows, columns = (weight.shape[0], weight.shape[1] * per_word) if len(weight.shape) == 2 else (0, 0)
        size = _group_size(settings, rows)
        _require_packing(weight, scales, zeros, (rows, columns), per_word, size)
        plain = f"{stem}.weight"
        shape = (rows, columns) if transposed(plain) else (columns, rows)
        yield Recipe(plain, shape, (weight, scales, zeros), partial(awq, size=size, turned=not transposed(plain)))


def awq(weight: Tensor, scales: Tensor, zeros: Tensor, *, size: int, turned: bool) -> Tensor:
    """(q − zero) × scale, four bits each, packed along the output in the order of `_AWQ_ORDER`.

    AutoAWQ 0.2, modules/linear/gemm.py (packing) and utils/packing_utils.py (unpacking, dequantize_gemm).
    """
    q, zero = _words(weight, 4, _AWQ_ORDER), _words(zeros, 4, _AWQ_ORDER)
    plain = _grouped(q, zero, scales, torch.arange(len(q)) // size)
    return plain.T.contiguous() if turned else plain


def _words(packed: Tensor, bits: int, order: tuple[int, ...] | range) -> Tensor:
    """[rows, words] of 32 bits → [rows, values]: the n-th lowest bits of a word are its value number order[n]."""
    values = torch.empty(*packed.shape, len(order), dtype=torch.int32)
    for place, column in enumerate(order):
        values[..., column] = (packed >> (bits * place)) & (2**bits - 1)
    return values.flatten(1)


def _grouped(q: Tensor, zero: Tensor, scales: Tensor, group: Tensor) -> Tensor:
    """(q − zero) × scale of [in, out] values, with zeros and scales [groups, out], and the group of every input."""
    if not 0 <= int(group.min()) <= int(group.max()) < len(scales):
        raise IncompleteError(f"a g_idx names groups beyond the {len(scales)} that there are", "download it again")
    return (q - zero[group]).float().mul_(scales.float()[group])


def _packed(stored: Stored) -> Iterator[tuple[str, StoredTensor]]:
    """Every packed weight, and what it is called but for its last name."""
    for name, tensor in stored.items():
        stem = name.removesuffix(".qweight")
        if stem != name:
            yield stem, tensor


def _require_packing(
    weight: StoredTensor, scales: StoredTensor, zeros: StoredTensor, shape: tuple[int, int], per_word: int, size: int
) -> None:
    """Refuses a packed weight that the numbers of its groups do not fit."""
    rows, columns = shape
    groups = -(-rows // size)
    if not groups or scales.shape != (groups, columns) or zeros.shape != (groups, -(-columns // per_word)):
        found = f"scales {list(scales.shape)} and zeros {list(zeros.shape)}"
        raise _refused(weight, f"does not fit its {found} in groups of {size}")
    if columns % per_word or {weight.dtype, zeros.dtype} != {"I32"}:
        raise _refused(weight, f"is not packed in words of 32 bits, {per_word} values each")


def _group_size(settings: Settings, rows: int) -> int:
    """Inputs that share a scale; −1 stands for all."""
    stated = settings.get("group_size", settings.get("q_group_size", 128))
    if stated == -1:
        return max(rows, 1)
    if type(stated) is not int or stated < 1:
        raise IncompleteError(f"its group_size is {stated!r:.20}", "correct its config.json")
    return stated


def _bits(settings: Settings, known: tuple[int, ...]) -> int:
    bits = settings.get("bits", settings.get("w_bit", 4))
    if type(bits) is not int or bits not in known:
        choice = ", ".join(map(str, known))
        raise IncompleteError(f"its weights have {bits!r:.20} bits, and archc unpacks {choice}", UNQUANTISED)
    return bits


def _beside(stored: Stored, tensor: StoredTensor, name: str) -> StoredTensor:
    if name not in stored:
        raise IncompleteError(f"{tensor.name} is there without {name}", "download it again")
    return stored[name]


def _refused(tensor: StoredTensor, why: str) -> IncompleteError:
    return IncompleteError(f"{tensor.name} ({tensor.dtype} {list(tensor.shape)}) {why}", UNQUANTISED)


_ACTIVATIONS = (".input_scale", ".activation_scale", ".input_scale_ub", ".output_scale", ".k_scale", ".v_scale")

FORMATS: Mapping[str, Format] = {
    "fp8": Format(_scaled("_scale_inv"), _ACTIVATIONS),
    "fbgemm_fp8": Format(_scaled("_scale"), _ACTIVATIONS),
    "compressed-tensors": Format(_compressed, _ACTIVATIONS),
    "mxfp4": Format(_mxfp4),
    "gptq": Format(_gptq),
    "awq": Format(_awq),
}
"""By `quant_method`, as transformers names them."""
