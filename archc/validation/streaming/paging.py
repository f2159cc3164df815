"""Weights that are there only while they are used: placeholders in the modules, pages in memory.

A model is built on torch's meta device: its parameters have a shape and no memory. A function of torch that is given
such a placeholder gets the numbers instead, of the block that is resident; if another block is, the run that asks waits
until its own is. So nothing of a model is changed, nothing needs to be known of how it is written, and a weight that is
used outside of its module (a tied head) is no exception.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from archc.checkpoints.headers import StoredTensor
from archc.errors import IncompleteError

CHANGED: Final = "leave the checkpoint as it is while a run reads it, and run again"
BEFORE: Final = -1
"""Where a page that belongs to no layer stands among the layers' numbers: whoever waits for it goes first."""


@dataclass(slots=True)
class Stored:
    """The tensors of a checkpoint, and how often each has been read."""

    tensors: Mapping[str, StoredTensor]
    reads: Counter[str] = field(default_factory=Counter)

    @property
    def bytes_read(self) -> int:
        """Bytes of weights that have been read so far."""
        return sum(times * self.tensors[name].nbytes for name, times in self.reads.items())

    @property
    def most_reads(self) -> int:
        """How often what was read most was read."""
        return max(self.reads.values(), default=0)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Tensor]]:
        """What reads a tensor by its name, once for all who ask in here: it is memory-mapped until the end.

        It raises IncompleteError where a file is not what it was when the run began.
        """
        with ExitStack() as stack:
            files: dict[str, Any] = {}
            found: dict[str, Tensor] = {}

            def read(name: str) -> Tensor:
                if name not in found:
                    file = str(self.tensors[name].file)
                    try:
                        if file not in files:
                            files[file] = stack.enter_context(safe_open(file, framework="pt"))
                        found[name] = files[file].get_tensor(name)
                    except (OSError, SafetensorError) as error:
                        raise IncompleteError(f"cannot read {name} in {file} any more: {error}", CHANGED) from error
                    self.reads[name] += 1
                return found[name]

            yield read
            found.clear()


@dataclass(frozen=True, slots=True)
class Page:
    """Weights that are loaded and dropped together: those of a layer, or of a module that stands around the layers."""

    name: str
    layer: int
    """Its number, or BEFORE."""
    stored: tuple[str, ...]
    """What the checkpoint calls the tensors that it is filled from."""


class Book:
    """The pages of one model. `resident` has the numbers of those that are loaded, by the identity of placeholders."""

    def __init__(self) -> None:
        self.page_of: dict[int, Page] = {}
        self.resident: dict[int, Tensor] = {}
        self.resident_bytes = 0
        self._held: dict[Page, dict[int, Tensor]] = {}

    def pages(self) -> tuple[Page, ...]:
        """Those that are resident."""
        return tuple(self._held)

    def hold(self, page: Page, found: Mapping[int, Tensor]) -> None:
        """Makes a page resident."""
        self._held[page] = dict(found)
        self.resident |= found
        self.resident_bytes += _bytes(found.values())

    def drop(self, page: Page) -> None:
        """Gives the memory of a page back."""
        for key, tensor in self._held.pop(page, {}).items():
            del self.resident[key]
            self.resident_bytes -= _bytes([tensor])


def _bytes(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Paging(TorchFunctionMode):
    """Gives functions of torch the numbers of the placeholders that they are called with; `wait` makes a page resident.

    What is asked of the form of a placeholder (its shape, its type) is answered without its numbers.
    """

    def __init__(self, book: Book, wait: Callable[[Page], None]) -> None:
        super().__init__()
        self._book, self._wait = book, wait

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Every function of torch passes here."""
        del types
        kwargs = kwargs or {}
        if args and id(args[0]) in self._book.page_of:
            if func in _FORM:
                return func(*args, **kwargs)
            if func in _PLACE:
                return _PLACE[func]
            if func in _LIKE:
                return func(torch.empty(0, dtype=args[0].dtype), *args[1:], **kwargs)
        given = (*args, *kwargs.values())
        while (page := next(self._absent(given), None)) is not None:
            self._wait(page)  # which may have taken away what was there: all must be at once
        return func(*map(self._real, args), **{name: self._real(value) for name, value in kwargs.items()})

    def _absent(self, values: Iterable[Any]) -> Iterator[Page]:
        for value in values:
            if isinstance(value, Tensor):
                if id(value) in self._book.page_of and id(value) not in self._book.resident:
                    yield self._book.page_of[id(value)]
            elif type(value) in (list, tuple):
                yield from self._absent(value)

    def _real(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._book.resident.get(id(value), value)
        if type(value) in (list, tuple):
            return type(value)(map(self._real, value))
        return value


def _getter(name: str) -> Any:
    return getattr(Tensor, name).__get__


_FORM = {_getter(name) for name in ("shape", "dtype", "ndim", "requires_grad", "layout", "is_sparse", "is_quantized")}
_FORM |= {Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, torch.is_floating_point, Tensor.__len__}
_FORM |= {torch.numel, Tensor.is_complex, torch.is_complex, Tensor.element_size, Tensor.nelement, Tensor.ndimension}
_PLACE = {_getter("device"): torch.device("cpu"), _getter("is_meta"): False, _getter("is_cuda"): False}
_LIKE = {Tensor.new_zeros, Tensor.new_empty, Tensor.new_ones, Tensor.new_full, Tensor.new_tensor}


def placeholders(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Where the parameters and stored buffers of a module on the meta device are: holder, name, placeholder."""
    for holder in module.modules():
        for table in (holder._parameters, holder._buffers):
            for name, tensor in table.items():
                if tensor is not None and tensor.is_meta:
                    yield holder, name, tensor
