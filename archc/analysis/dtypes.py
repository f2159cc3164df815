"""Bytes that numbers of a given type take in memory."""

from __future__ import annotations

from typing import Final

BITS: Final[dict[str, int]] = {
    "float32": 32,
    "bfloat16": 16,
    "float16": 16,
    "float8": 8,
    "int8": 8,
    "int4": 4,
}
"""Bits per number. A quantised format also stores scales (one per channel or block); they are left out."""


def stored_bytes(elements: int, bits: int) -> int:
    """Bytes of `elements` numbers of `bits` bits each, rounded up to a whole byte."""
    return -(-elements * bits // 8)
