"""What the weights take in memory, in the type asked for and in three formats that people serve models in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypedDict

from archc.analysis.dtypes import BITS, stored_bytes
from archc.analysis.params import Sums
from archc.architecture.model import Architecture
from archc.parts.base import Tensor

GROUP: Final = 128
"""Inputs that share a scale."""
SCALE_BITS: Final = 16

CONVENTIONS: Final = (
    "bytes is every parameter in one type, without scales",
    "float8 and int4_g128 store the matrices of mixers and feed-forwards in 8 and 4 bits, and all else in bfloat16: "
    "embedding, head, routers, norms, biases, and what has fewer than 128 inputs",
    "int4_g128 adds a 16-bit scale for every 128 inputs of every output; float8 adds none",
    "buffers beside the parameters are left out",
)


class Formats(TypedDict):
    """Bytes of the weights in formats that are in use."""

    bfloat16: int
    float8: int
    int4_g128: int


class Weights(TypedDict):
    """The weights in memory; `bytes` is params.total numbers of `dtype`."""

    dtype: str
    bytes: int
    formats: Formats
    conventions: list[str]


def weight_sizes(architecture: Architecture, *, total: int, dtype: str) -> Weights:
    """The sizes of `total` parameters, those of `architecture`."""
    sums = quantised_sums(architecture.counted_in_layers())
    return Weights(
        dtype=dtype,
        bytes=stored_bytes(total, BITS[dtype]),
        formats=formats_of(total, sums),
        conventions=list(CONVENTIONS),
    )


def quantised_sums(counted: Iterable[tuple[Tensor, int]]) -> Sums:
    """Numbers in matrices of layers that are stored in few bits, and scales beside them."""
    sums: Sums = Counter()
    for tensor, count in counted:
        if not tensor.buffer and _is_quantised(tensor):
            inputs = tensor.shape[-1]
            sums["quantised"] += tensor.size * count
            sums["scales"] += tensor.size // inputs * -(-inputs // GROUP) * count
    return sums


def formats_of(total: int, sums: Sums) -> Formats:
    """Bytes of `total` parameters, from the sums over the tensors of all layers."""
    sixteen = BITS["bfloat16"]
    rest = stored_bytes(total - sums["quantised"], sixteen)
    int4 = sums["quantised"] * BITS["int4"] + sums["scales"] * SCALE_BITS
    return Formats(
        bfloat16=stored_bytes(total, sixteen),
        float8=rest + stored_bytes(sums["quantised"], BITS["float8"]),
        int4_g128=rest + -(-int4 // 8),
    )


def _is_quantised(tensor: Tensor) -> bool:
    """Whether it is a matrix, or one for each expert, with rows of at least a group.

    Taps of convolutions and decays per state have two dimensions too, but short rows.
    """
    dimensions = len(tensor.shape) - (tensor.slices_used is not None)
    return tensor.group in ("attention", "ffn") and dimensions > 1 and tensor.shape[-1] >= GROUP
