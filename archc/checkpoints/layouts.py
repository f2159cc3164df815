"""In which layout one tensor holds another: as it is, its rows in another order, transposed, a constant folded in.

Whether a layout is right is not said here: it depends on who reads the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

_SAMPLE = 16
_PIECE = 1 << 20
_LARGEST_HEAD = 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """What was done to a tensor: a name for machines, words for people, and the function that does it."""

    kind: str
    text: str
    apply: Callable[[Tensor], Tensor]
    head_rows: int | None = None
    """For rotary layouts: the rows of a head."""
    by_rows: bool = False
    """Whether it moves whole rows, so that a few columns show it."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Of a tensor from what it is held against: root mean square relative to that, and the largest element."""

    relative_rms: float
    max_abs: float


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What storing in fewer bits may do to a number: `epsilon` times itself, and `absolute` where it is tiny.

    Of a quantised tensor, numbers of `bits` in blocks of `block`, a number may be off by half a step, or a whole one at
    the ends of the range, where a step is the range over 2^bits − 1. Of normally distributed numbers in blocks of 32
    that is a relative rms of 1.2 / (2^bits − 1). Twice that is allowed.
    """

    epsilon: float = 0.0
    absolute: float = 0.0
    bits: int | None = None
    block: int = 32

    @property
    def most_rms(self) -> float:
        """The relative rms beyond which two tensors are surely not the same."""
        return 8 * self.epsilon if self.bits is None else min(2.4 / (2**self.bits - 1), 0.9)

    def holds(self, wanted: Tensor, found: Tensor, apart: Deviation) -> bool:
        """Whether `found` is `wanted` after storing; `apart` is how far they are from another."""
        if self.bits is not None and not apart.relative_rms <= self.most_rms:
            return False
        width = found.shape[-1] if found.ndim else 1
        size = self.block if width % self.block == 0 else width
        return all(self._holds(*pair) for pair in _pieces(wanted, found, size))

    def _holds(self, wanted: Tensor, found: Tensor) -> bool:
        """Whether it holds of a piece, in rows of a block each."""
        difference = (wanted - found).abs_()
        largest = torch.maximum(wanted.abs(), found.abs())
        if self.bits is None:
            return bool((difference <= largest.mul_(self.epsilon).add_(self.absolute)).all())
        return bool((difference.amax(1) <= 5 * largest.amax(1) / 2**self.bits).all())


FLOATS = {
    "F64": Tolerance(2.0**-23),  # they are compared in float32
    "F32": Tolerance(2.0**-23),
    "F16": Tolerance(2.0**-10, 2.0**-24),
    "BF16": Tolerance(2.0**-7),
}
"""Twice the rounding error of a type: to round down instead of to nearest is no fault."""


def deviation(wanted: Tensor, found: Tensor) -> Deviation:
    """How far `found` is from `wanted`; infinite where `wanted` is nothing but zeros, and `found` is not."""
    scale = error = largest = 0.0
    for one, other in _pieces(wanted, found, 1):
        difference = (other - one).double()
        scale += float(one.double().square().sum())
        error += float(difference.square().sum())
        largest = max(largest, float(difference.abs().max()))
    relative = math.sqrt(error / scale) if scale else (0.0 if not error else math.inf)
    return Deviation(relative, largest)


def _pieces(one: Tensor, other: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Both in rows of `width`, some at a time: what is made of them stays small."""
    if not one.numel():
        return
    rows = max(1, _PIECE // width)
    yield from zip(torch.split(one.reshape(-1, width), rows), torch.split(other.reshape(-1, width), rows), strict=True)


def find_layout(
    a: Tensor, b: Tensor, tolerance: Tolerance, heads: Sequence[int] = (), first: str = "same"
) -> tuple[Layout | None, Deviation]:
    """The layout in which `b` holds `a`, both in float32, and what is left between them.

    Layouts of the kind `first` are tried before others, so that where two do the same, that one is named. Where none
    fits, None, and how far apart they are as they stand (infinitely, where their shapes differ).
    """
    known = sorted(_layouts(a, b, heads), key=lambda layout: (layout.kind != first, layout.kind != "same"))
    for layout in known:
        if not _may_fit(layout, a, b, tolerance):
            continue
        made = layout.apply(a)
        if made.shape == b.shape and tolerance.holds(made, b, left := deviation(made, b)):
            return layout, left
    if a.shape == b.shape and (factor := _factor(a, b)) is not None:
        made = a * factor
        if tolerance.holds(made, b, left := deviation(made, b)):
            return Layout("scaled", f"times {factor:.6g}", lambda x: x * factor), left
    apart = deviation(a, b) if a.shape == b.shape else Deviation(math.inf, math.inf)
    return None, apart


def _may_fit(layout: Layout, a: Tensor, b: Tensor, tolerance: Tolerance) -> bool:
    """A look at a few columns, before a large tensor is reordered for nothing."""
    if not layout.by_rows or a.ndim < 2 or a.shape[-1] <= _SAMPLE:
        return True
    columns = torch.linspace(0, a.shape[-1] - 1, _SAMPLE).long()
    return deviation(layout.apply(a[..., columns]), b[..., columns]).relative_rms <= 2 * tolerance.most_rms


def _factor(a: Tensor, b: Tensor) -> float | None:
    length = float((a.double() ** 2).sum())
    factor = float((a.double() * b.double()).sum()) / length if length else 0.0
    return factor if math.isfinite(factor) and factor else None


def _layouts(a: Tensor, b: Tensor, heads: Sequence[int]) -> Iterator[Layout]:
    if a.shape == b.shape:
        yield Layout("same", "as it is", lambda x: x)
        for name, change in (("plus_one", 1.0), ("plus_two", 2.0), ("minus_one", -1.0), ("minus_two", -2.0)):
            yield Layout(name, f"{change:+g} folded in", partial(torch.add, other=change))
        yield Layout("negative_exp", "−exp of it", lambda x: -x.exp())
        if a.ndim and a.numel():
            yield from _orders(a.shape[_row_axis(a)], heads)
    if a.ndim > 1 and b.shape == a.transpose(-1, -2).shape:
        yield Layout("transposed", "transposed", lambda x: x.transpose(-1, -2))
    if a.numel() == b.numel() and [n for n in a.shape if n > 1] == [n for n in b.shape if n > 1] and a.ndim != b.ndim:
        yield Layout("unit_axis", "with or without axes of size 1", lambda x: x.reshape(b.shape))
    if a.ndim == b.ndim > 1 and a.shape[1:] == b.shape[1:] and a.shape[0] != b.shape[0]:
        more = b.shape[0] - a.shape[0]
        if more > 0:
            yield Layout("padded", f"{more} more rows at the end", lambda x: torch.cat([x, b[len(x) :]]))
        else:
            yield Layout("cut", f"without the last {-more} rows", lambda x: x[: b.shape[0]])


def _row_axis(tensor: Tensor) -> int:
    return tensor.ndim - 2 if tensor.ndim > 1 else 0


def _orders(rows: int, heads: Sequence[int]) -> Iterator[Layout]:
    """Rows in another order; `heads` are numbers of heads that the model is known to have."""
    known = [rows // count for count in dict.fromkeys(heads) if count and rows % (2 * count) == 0]
    guessed = [size for size in range(4, min(rows // 2, _LARGEST_HEAD) + 1, 2) if rows % size == 0]
    for size in dict.fromkeys([*known, *guessed]):
        turned = _turned(rows, size)
        words = f"rotary permutation of heads of {size} rows"
        yield _ordered("rotary", words, turned, size)
        yield _ordered("rotary_back", f"{words}, backwards", torch.argsort(turned), size)
        yield _ordered("rotary_twice", f"{words}, twice", turned[turned], size)
    if rows % 2 == 0:
        turned = _turned(rows, rows)
        yield _ordered("interleaved", "rows of its two halves by turns", turned)
        yield _ordered("parted", "even rows before odd ones", torch.argsort(turned))
    if rows % 2 == 0:
        yield _ordered("halves_swapped", "the two halves of its rows swapped", _blocks(rows, (1, 0)))
    if rows % 3 == 0:
        for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            text = f"the thirds of its rows in the order {order[0]} {order[1]} {order[2]}"
            yield _ordered("thirds_reordered", text, _blocks(rows, order))
    if len(pair := sorted(set(heads))) == 2 and pair[0] > 0 and pair[1] % pair[0] == 0 and rows % pair[1] == 0:
        tiled = torch.arange(rows).reshape(pair[0], pair[1] // pair[0], -1).transpose(0, 1).flatten()
        yield _ordered("heads_tiled", "query heads in turn over the key/value heads, instead of in groups", tiled)
    for count in dict.fromkeys(heads):
        for parts in (2, 3):
            if count > 1 and rows % (count * parts) == 0:
                split = torch.arange(rows).reshape(parts, count, -1).transpose(0, 1).flatten()
                words = f"{parts} parts of each of {count} heads"
                yield _ordered("by_head", f"{words} together, instead of each part of all heads", split)
                yield _ordered("by_part", f"{words} apart, instead of together", torch.argsort(split))


def _ordered(kind: str, text: str, order: Tensor, head_rows: int | None = None) -> Layout:
    def apply(tensor: Tensor) -> Tensor:
        return tensor.index_select(_row_axis(tensor), order)

    return Layout(kind, text, apply, head_rows, by_rows=True)


def _turned(rows: int, size: int) -> Tensor:
    """Rows of each head as llama.cpp stores them: (2, size / 2) becomes (size / 2, 2)."""
    return torch.arange(rows).reshape(-1, 2, size // 2).transpose(1, 2).flatten()


def _blocks(rows: int, order: tuple[int, ...]) -> Tensor:
    return torch.arange(rows).reshape(len(order), -1)[list(order)].flatten()
