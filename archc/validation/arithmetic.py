"""A model's arithmetic in another type, with the weights that it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


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
