"""A model's arithmetic in another type or by another library, with the weights that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


@contextmanager
def arithmetic_in(dtype: torch.dtype, model: nn.Module) -> Iterator[None]:
    """Every weight and table in a type with more digits; afterwards each is what it was, bit by bit."""
    own = [tensor.dtype for tensor in (*model.parameters(), *model.buffers())]
    model.to(dtype)
    try:
        yield
    finally:
        for tensor, narrow in zip((*model.parameters(), *model.buffers()), own, strict=True):
            tensor.data = tensor.data.to(narrow)


def other_products() -> AbstractContextManager[object]:
    """Linear layers in 32 bits on a CPU through oneDNN, where torch has it, instead of its BLAS.

    What a library adds up in which order is its own affair, and changes the last digits as moved weights do.
    """
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return _OneDNN() if there else nullcontext()


class _OneDNN(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        if func is F.linear and len(args) > 1 and all(_in_32_bits_on_a_cpu(one) for one in args[:2]):
            return func(args[0].to_mkldnn(), *args[1:], **(kwargs or {})).to_dense()
        return func(*args, **(kwargs or {}))


def _in_32_bits_on_a_cpu(x: Any) -> bool:
    return type(x) in {Tensor, nn.Parameter} and x.is_cpu and x.dtype is torch.float32 and x.numel() > 0
