"""Weights wherever they lie, a tensor at a time in float32: a checkpoint folder, quantised or not, or a GGUF file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy
import torch
from torch import Tensor

from archc.checkpoints.dequantise import Checkpoint, open_checkpoint, quantisation
from archc.checkpoints.headers import read_config
from archc.checkpoints.layouts import FLOATS, Tolerance
from archc.errors import ArchcError, IncompleteError

Read = Callable[[str], Tensor]

# Superblocks of k-quants and of those with tables.
_LARGE_BLOCK = 256
_FP8 = Tolerance(bits=5)
_IN_FP8 = ("fp8", "fbgemm_fp8", "compressed-tensors")


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor by its header: shape as torch has it, the type it is stored in, and what that type may do to numbers."""

    shape: tuple[int, ...]
    dtype: str
    tolerance: Tolerance


class Weights(Protocol):
    """Where weights lie."""

    @property
    def place(self) -> Path:
        """The folder or file."""

    @property
    def tensors(self) -> Mapping[str, Held]:
        """What it holds, by name."""

    @property
    def heads(self) -> tuple[int, ...]:
        """How many query heads and key/value heads the model has, where that is stated."""

    def reading(self) -> AbstractContextManager[Read]:
        """What reads a tensor by its name, in float32."""


def open_weights(place: Path) -> Weights:
    """The weights at `place`, by their headers. Raises IncompleteError where there are none, or they are damaged."""
    return GgufWeights(place) if place.suffix == ".gguf" else FolderWeights(place)


class FolderWeights:
    """A checkpoint folder; what is quantised has the names and shapes of its plain form."""

    def __init__(self, folder: Path) -> None:
        self.place = folder
        config = read_config(folder)
        self._checkpoint: Checkpoint = open_checkpoint(folder)
        made = {recipe.name for recipe in self._checkpoint.recipes}
        method = self._checkpoint.method
        bits = (quantisation(config) or {}).get("bits")
        packed = (
            _FP8 if method in _IN_FP8 else Tolerance(bits=bits if method == "gptq" and isinstance(bits, int) else 4)
        )
        self.tensors = {
            name: Held(tensor.shape, method, packed)
            if name in made
            else Held(tensor.shape, tensor.dtype, FLOATS.get(tensor.dtype, Tolerance()))
            for name, tensor in self._checkpoint.tensors.items()
        }
        text = config.get("text_config")
        section = text if isinstance(text, dict) else config
        keys = ("num_attention_heads", "n_head", "num_key_value_heads")
        self.heads = tuple(count for key in keys if isinstance(count := section.get(key), int) and count > 0)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """What reads a tensor by its name, in float32."""
        with self._checkpoint.reading() as read:
            yield lambda name: read(name).float()


class GgufWeights:
    """A GGUF file. Tensors that are quantised are read as the numbers they stand for."""

    def __init__(self, file: Path) -> None:
        self.place = file
        with _blamed(file):
            reader = _reader(file)
            self.architecture = _text(reader, "general.architecture")
            parts = _number(reader, "split.count")
            keys = ("block_count", "attention.head_count", "attention.head_count_kv")
            blocks, *heads = (_number(reader, f"{self.architecture}.{key}") for key in keys)
            self._stored = {tensor.name: tensor for tensor in reader.tensors}
            self.tensors = {name: _held(tensor) for name, tensor in self._stored.items()}
        if parts is not None and parts > 1:
            raise IncompleteError(f"{file} is one part of {parts}", "merge them with llama-gguf-split --merge")
        self.blocks = min(blocks or 0, len(self._stored))
        self.heads = tuple(count for count in heads if count is not None and count > 0)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """What reads a tensor by its name, in float32."""
        yield self._read

    def _read(self, name: str) -> Tensor:
        from gguf import quants

        tensor, held = self._stored[name], self.tensors[name]
        with _blamed(self.place):
            plain = quants.dequantize(tensor.data, tensor.tensor_type)
            own = numpy.require(plain, numpy.float32, "W")  # what is stored as float32 is a view of the file
            return torch.from_numpy(own).reshape(held.shape)


def _reader(file: Path) -> Any:
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError as error:
        raise IncompleteError(f"GGUF files need {error.name}", "pip install 'archc[torch]'") from None
    if not file.is_file():
        raise IncompleteError(f"there is no file {file}", "name a GGUF file or a checkpoint folder")
    return GGUFReader(file)


@contextmanager
def _blamed(file: Path) -> Iterator[None]:
    """A damaged file trips its reader in many places."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ArchcError, MemoryError):
        raise
    except Exception as error:
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        raise IncompleteError(f"{file} is damaged or no GGUF file: {problem}", "download it again") from None


def _held(tensor: Any) -> Held:
    kind = tensor.tensor_type.name
    return Held(tuple(int(size) for size in reversed(tensor.shape)), kind, _tolerance(kind))


def _text(reader: Any, key: str) -> str:
    found = reader.get_field(key)
    return str(found.contents()) if found is not None else ""


def _number(reader: Any, key: str) -> int | None:
    """A number of the metadata; None where it is not stated, or differs from layer to layer."""
    found = reader.get_field(key)
    value = found.contents() if found is not None else None
    return value if isinstance(value, int) else None


def _tolerance(kind: str) -> Tolerance:
    """By the name of a GGUF type, of which the first number is its bits: Q4_K, IQ2_XXS, TQ1_0, MXFP4."""
    if kind in FLOATS:
        return FLOATS[kind]
    bits = re.search(r"[0-9]+", kind)
    plain = re.fullmatch(r"Q[0-9]_[01]|(MX|NV)FP4", kind)
    return Tolerance(bits=max(int(bits[0]), 2) if bits else 8, block=32 if plain else _LARGE_BLOCK)
