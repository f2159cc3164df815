"""The two models of a streamed run: built on the meta device by their own loaders, and filled by these page by page."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import Tensor, nn

from archc.architecture.model import Architecture
from archc.checkpoints.headers import StoredTensor
from archc.codegen import generate
from archc.errors import IncompleteError
from archc.validation.calling import signature_of
from archc.validation.places import find_places
from archc.validation.ports import import_source
from archc.validation.reference import Reference, is_mask, nudge, quiet
from archc.validation.streaming.pages import Pages
from archc.validation.streaming.paging import BEFORE, Book, Page, Paging, placeholders
from archc.validation.streaming.seams import Seams

Read = Callable[[str], Tensor]
_WHOLE: Final = "validate it without --stream, on a machine with enough memory"
_DTYPES: Final = {"F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16}


class PagedReference:
    """transformers' own model. What its loader does to stored tensors (renames, stacks) it does to those of a page."""

    def __init__(
        self, folder: Path, architecture: Architecture, pages: Pages, stored: Mapping[str, StoredTensor]
    ) -> None:
        with _from_headers() as self._loading:
            self.reference = Reference(folder, architecture=architecture)
        self.model, self.places, self.book = self.reference.model, self.reference.places, Book()
        self.signature = signature_of(self.model.forward, lambda *_, **__: None)
        if not self.places.layers:
            raise IncompleteError("where the reference has its layers is not known, so it cannot be streamed", _WHOLE)
        self._architecture, self._stored = architecture, stored
        self._seed: int | None = None
        self._places = list(placeholders(self.model))
        self._buffers = {id(tensor) for _, _, tensor in self._places if not isinstance(tensor, nn.Parameter)}
        self._tables: dict[int, list[Tensor]] = {}
        self._assign(pages)
        self.seams = Seams(self.places)

    def _assign(self, pages: Pages) -> None:
        """Finds the page of every placeholder: of a layer's by where it is, of others by what their page fills."""
        layers = {page.layer: page for page in pages.all if page.layer != BEFORE}
        for number, place in enumerate(self.places.layers):
            for _, _, tensor in placeholders(place.module):
                self.book.page_of[id(tensor)] = layers[number]
            masks = (buffer for buffer in place.module.buffers() if not buffer.is_meta)
            self._tables[number] = [buffer for buffer in masks if not is_mask(buffer)]
        for page in pages.all:
            if page.layer == BEFORE:
                filled = self._filled({name: _header(self._stored[name]) for name in page.stored})
                self.book.page_of |= dict.fromkeys(filled, page)
        lost = next((name for name, _, tensor in self._named() if id(tensor) not in self.book.page_of), None)
        if lost is not None:
            raise IncompleteError(f"which block of the checkpoint fills {lost} is not known", _WHOLE)

    def _named(self) -> Iterator[tuple[str, nn.Module, Tensor]]:
        names = {module: name for name, module in self.model.named_modules()}
        return ((f"{names[holder]}.{name}", holder, tensor) for holder, name, tensor in self._places)

    def _filled(self, values: Mapping[str, Any]) -> dict[int, Tensor]:
        """What transformers makes of stored tensors, by the placeholders that it would replace."""
        from transformers import core_model_loading

        with quiet(), _one_at_a_time():
            core_model_loading.convert_and_load_state_dict_in_model(
                model=self.model, state_dict=dict(values), load_config=self._loading.config
            )
        found = {}
        for holder, name, placeholder in self._places:
            table: dict[str, Any] = holder._parameters if name in holder._parameters else holder._buffers
            if table[name] is not placeholder:
                found[id(placeholder)] = table[name].detach()
                table[name] = placeholder
        return found

    def paging(self, wait: Callable[[Page], None]) -> Paging:
        """The mode in which its runs see the numbers of their weights."""
        return Paging(self.book, wait)

    def load(self, page: Page, read: Read) -> None:
        """Makes a page resident, as it is stored."""
        self.moved(None)
        found = self._filled({name: _Lazy(read, name) for name in page.stored})
        wanted = [name for name, _, one in self._named() if self.book.page_of[id(one)] == page and id(one) not in found]
        if wanted:
            raise IncompleteError(f"{wanted[0]} is not stored with its layer, so it cannot be streamed", _WHOLE)
        self.book.hold(page, found)

    def drop(self, page: Page) -> None:
        """Gives the memory of a page back."""
        self.moved(None)
        self.book.drop(page)

    def moved(self, seed: int | None) -> None:
        """Moves all that is resident by one unit in the last place, by a seed; None: as it is stored."""
        if seed == self._seed:
            return
        held = [one for key, one in self.book.resident.items() if key not in self._buffers or not is_mask(one)]
        tables = [one for page in self.book.pages() for one in self._tables.get(page.layer, [])]
        if self._seed is not None:
            nudge((*held, *tables), self._seed, -1)
        if seed is not None:
            nudge((*held, *tables), seed, 1)
        self._seed = seed

    def another(self, seed: int | None) -> nn.Module:
        """The model once more, with the same layers and weights, and what stands around the layers for itself.

        Some rotary tables remember the longest input so far: runs must not share them. Moved by a seed, where given.
        """
        shared = [place.module for place in self.places.layers]
        shared += [module.config for module in self.model.modules() if hasattr(module, "config")]
        memo = {id(one): one for one in (*shared, *(tensor for _, _, tensor in self._places))}
        model: nn.Module = copy.deepcopy(self.model, memo)
        if seed is not None:
            within = {id(table) for place in self.places.layers for table in place.module.buffers()}
            own = (table for table in model.buffers() if not table.is_meta and id(table) not in within)
            nudge([table for table in own if not is_mask(table)], seed, 1)
        return model


class PagedPort:
    """The generated module. Its own table of tensors fills each page."""

    def __init__(
        self, folder: Path, architecture: Architecture, pages: Pages, stored: Mapping[str, StoredTensor]
    ) -> None:
        self.source = generate(architecture)
        self.book, self._code, self._stored = Book(), import_source(self.source), stored
        self._code.stored_tensors = self._headers
        try:
            self.model: Any = self._code.Model.from_pretrained(folder, torch.float32, "meta")
        except (ValueError, OSError) as error:
            raise IncompleteError(f"the generated module cannot load {folder}: {error}", "check the spec") from error
        self.name = f"generated from {architecture.name}"
        self.places = find_places(self.model, architecture)
        self.seams = Seams(self.places)
        parameters = (*self.model.named_parameters(remove_duplicate=False), *self.model.named_buffers())
        self._parameters: dict[str, Tensor] = dict(parameters)
        self._page = {name: pages.of(name) for name in self._parameters}
        self.book.page_of = {id(tensor): self._page[name] for name, tensor in self._parameters.items()}

    def _headers(self, _: Path) -> Iterator[tuple[str, Tensor]]:
        return ((name, _header(held)[...].as_subclass(Tensor)) for name, held in sorted(self._stored.items()))

    def paging(self, wait: Callable[[Page], None]) -> Paging:
        """The mode in which its runs see the numbers of their weights."""
        return Paging(self.book, wait)

    def load(self, page: Page, read: Read) -> None:
        """Makes a page resident. What may be missing in a checkpoint, and is, is zero."""
        own = {name: tensor for name, tensor in self._parameters.items() if self._page[name] == page}
        made = {name: torch.zeros(tensor.shape, dtype=tensor.dtype) for name, tensor in own.items()}

        def stored_tensors(_: Path) -> Iterator[tuple[str, Tensor]]:
            for name in page.stored:
                yield name, read(name)
            raise _EnoughError

        self._code.stored_tensors = stored_tensors
        everything = SimpleNamespace(state_dict=lambda: {**self._parameters, **made})
        try:
            if made:
                self._code.load_checkpoint(everything, Path())
        except _EnoughError:
            pass
        self.book.hold(page, {id(own[name]): tensor for name, tensor in made.items()})

    def drop(self, page: Page) -> None:
        """Gives the memory of a page back."""
        self.book.drop(page)

    def moved(self, seed: int | None) -> None:
        """Its weights are never moved."""


class _EnoughError(Exception):
    """Ends the generated loader where all of a page has been filled, before it asks for the rest."""


class _Header(Tensor):
    """A stored tensor without its numbers, which stays without them wherever a loader puts it."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def to(self, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
        """On the meta device, whichever was asked for."""
        return self.as_subclass(Tensor).to(dtype=dtype)


class _Slice:
    """As safetensors' slices, of a tensor without numbers."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self._shape, self._dtype = shape, dtype

    def __getitem__(self, _: Any) -> Tensor:
        return torch.empty(self._shape, dtype=self._dtype, device="meta").as_subclass(_Header)


def _header(held: StoredTensor) -> _Slice:
    return _Slice(held.shape, _DTYPES.get(held.dtype, torch.float32))


class _Lazy:
    """As safetensors' slices: read when the loader comes to it. Never a view of the file, which must not be moved."""

    def __init__(self, read: Read, name: str) -> None:
        self._read, self._name = read, name

    def __getitem__(self, _: Any) -> Tensor:
        found = self._read(self._name)
        return found.clone() if found.dtype is torch.float32 else found


@contextmanager
def _from_headers() -> Iterator[SimpleNamespace]:
    """Lets transformers load checkpoints without their numbers, and keeps how it was told to load them."""
    from transformers import modeling_utils

    load, kept = modeling_utils.convert_and_load_state_dict_in_model, SimpleNamespace(config=None)

    def load_headers(model: Any, state_dict: Mapping[str, Any], load_config: Any, **more: Any) -> Any:
        kept.config = load_config
        headers = {
            name: _Slice(tuple(one.get_shape()), _DTYPES.get(one.get_dtype(), torch.float32))
            for name, one in state_dict.items()
        }
        return load(model=model, state_dict=headers, load_config=load_config, **more)

    modeling_utils.convert_and_load_state_dict_in_model = load_headers
    try:
        yield kept
    finally:
        modeling_utils.convert_and_load_state_dict_in_model = load


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keeps transformers from reading a whole page before it puts the first tensor in its place."""
    name = "HF_DEACTIVATE_ASYNC_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
